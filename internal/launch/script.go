package launch

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Script returns the file that an interpreter is told to run, as it is written, or "" where the command runs no script.
func (c Command) Script() string {
	words := append([]string{c.Path}, c.Args...)
	for range deepest {
		if len(words) == 0 {
			return ""
		}
		name, args := ProgramName(words[0]), words[1:]
		o := flags{}
		switch {
		case name == "env":
			o = options(args, envValues, "")
			if o.has("-S") || o.has("--split-string") {
				return ""
			}
			for o.rest < len(args) && strings.Contains(args[o.rest], "=") {
				o.rest++
			}
			words = args[o.rest:]
			continue
		case name == "uv" && len(args) > 0 && args[0] == "run":
			o = options(args[1:], uvValues, "-m")
			if words = args[1+o.rest:]; o.has("-m") || len(words) == 0 {
				return ""
			}
			if strings.HasSuffix(words[0], ".py") {
				return words[0]
			}
			continue
		case slices.Contains([]string{"node", "nodejs", "tsx", "bun", "deno"}, name):
			o = options(args, nodeValues, "")
			if o.rest < len(args) && args[o.rest] == "run" && name != "node" {
				more := options(args[o.rest+1:], nodeValues, "")
				o.rest += 1 + more.rest
			}
		case name == "python3":
			o = options(args, "-m -c -W -X", "-m")
		case slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "fish"}, name):
			o = options(args, "-c -o +o", "-c")
		case interpreters().MatchString(name):
			o = options(args, "", "")
		default:
			return ""
		}
		if o.rest >= len(args) || slices.ContainsFunc([]string{"-m", "-c", "-e", "--eval", "-p", "--print"}, o.has) {
			return ""
		}
		return args[o.rest]
	}
	return ""
}

// ScriptName returns what to call a server that is a script: the name of its file, or where that says nothing (index,
// main, server), the name of the directory of the project that it is in. Dir is what a relative path starts from.
func ScriptName(script, dir string) string {
	file := slashed(script)
	name := strings.TrimSuffix(path.Base(file), path.Ext(file))
	if !slices.Contains([]string{"index", "main", "__main__", "server", "app", "cli", "run", "start"}, strings.ToLower(name)) {
		return name
	}
	if !filepath.IsAbs(script) {
		file = path.Join(slashed(dir), file)
	}
	for at := path.Dir(file); at != path.Dir(at); at = path.Dir(at) {
		if base := path.Base(at); !slices.Contains([]string{"dist", "build", "out", "src", "lib", "bin", "server"}, base) {
			return base
		}
	}
	return name
}
