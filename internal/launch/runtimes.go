package launch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/roots"
)

// RunnerError says that a command fetches its server from a registry when it is started, so that nobody can say
// beforehand what it needs.
type RunnerError struct{ Program string }

// Error says it.
func (e *RunnerError) Error() string {
	return fmt.Sprintf("%s fetches and installs the server when it is started: install it first, and name the installed program", e.Program)
}

func runner(program string) error {
	switch program {
	case "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uv", "uvx", "pipx", "docker", "podman":
		return &RunnerError{program}
	}
	return nil
}

// runtime adds what a program of that name reads when it is run with args: called is how it was named, and real the file.
func (f *finder) runtime(name, called, real string, args []string) error {
	if err := runner(name); err != nil && !f.look.Install {
		return err
	}
	switch name {
	case "node", "nodejs", "bun", "deno":
		f.set("OPENSSL_CONF", "/dev/null") // without one it goes on, and with one that it may not read it ends
		if name == "deno" {
			f.set("DENO_NO_UPDATE_CHECK", "1")
		}
		for variable, cache := range map[string]string{"DENO_DIR": "deno", "BUN_INSTALL_CACHE_DIR": "bun", "BUN_RUNTIME_TRANSPILER_CACHE_PATH": "bun"} {
			if name == cache && f.look.Tmp != "" {
				f.set(variable, filepath.Join(f.look.Tmp, cache))
			}
		}
		o := options(args, nodeValues, "")
		for _, module := range o.all("-r", "--require", "--import", "--loader", "--experimental-loader") {
			if strings.Contains(module, "/") {
				f.packageOf(module, "package.json")
			}
		}
		i := o.rest
		if name != "node" && i < len(args) && args[i] == "run" {
			i += 1 + options(args[i+1:], nodeValues, "").rest
		}
		if i < len(args) && !o.has("-e") && !o.has("--eval") && !o.has("-p") && !o.has("--print") {
			f.packageOf(args[i], "package.json")
			f.listed(name, args[i])
		}
	case "python3":
		f.python(called, real)
		o := options(args, "-m -c -W -X", "-m")
		if !o.has("-m") && !o.has("-c") && o.rest < len(args) {
			f.packageOf(args[o.rest], "pyproject.toml", "setup.py", "requirements.txt")
		}
	case "git":
		f.set("GIT_CONFIG_GLOBAL", "/dev/null") // as for Node
		for _, path := range []string{"/usr/lib/git-core", "/usr/libexec/git-core", "/usr/share/git-core"} {
			f.add(Need{Path: path, Access: roots.Read, Execute: true, Why: "git"})
		}
		f.add(Need{Path: "/etc/gitconfig", Access: roots.Read, Why: "git"})
	case "env":
		o := options(args, envValues, "")
		i := o.rest
		for i < len(args) && strings.Contains(args[i], "=") {
			i++
		}
		if i < len(args) {
			path, err := f.lookPath(args[i])
			if err != nil {
				return err
			}
			return f.program(path, args[i+1:], false)
		}
	case "sh", "bash", "dash", "zsh", "ksh":
		return f.shell(args)
	default:
		// A program that we do not know, which may run the script that is its first argument.
		if i := options(args, "", "").rest; i < len(args) && strings.Contains(args[i], "/") && interpreters().MatchString(name) {
			f.packageOf(args[i])
		}
	}
	return nil
}

// set gives the command a variable that it has no value for.
func (f *finder) set(name, value string) {
	c := &f.needs.Command
	if c.Env[name] != "" || f.look.Getenv(name) != "" {
		return
	}
	if c.Env = maps.Clone(c.Env); c.Env == nil {
		c.Env = map[string]string{}
	}
	c.Env[name] = value
}

// interpreters are programs whose first argument is what they run.
var interpreters = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(ruby|perl|php|java|lua|Rscript|tclsh|guile|dotnet|elixir|julia)[0-9.]*$`)
})

const envValues = "-u --unset -C --chdir"

const nodeValues = "-r --require --import --loader --experimental-loader -C --conditions -e --eval -p --print -c --config --env-file"

// shell adds what a shell runs, where that is one program and its arguments.
func (f *finder) shell(args []string) error {
	o := options(args, "-c -o +o", "-c")
	text := o.last("-c")
	if text == "" {
		if o.rest < len(args) {
			f.packageOf(args[o.rest])
		}
		f.note("a shell script is not looked into: what it runs has to be allowed by name (allow_run)")
		return nil
	}
	words := strings.Fields(text)
	if len(words) > 0 && words[0] == "exec" {
		words = words[1:]
	}
	if len(words) == 0 || strings.ContainsAny(text, "\"'`$\\;&|<>(){}*?[]#~=\n") {
		f.note("a shell command of several parts is not looked into: what it runs has to be allowed by name (allow_run)")
		return nil
	}
	path, err := f.lookPath(words[0])
	if err != nil {
		return err
	}
	return f.program(path, words[1:], false)
}

// packageOf adds the directory of the program's own code that a script is in: the outermost node_modules, the nearest
// directory above with one of the marks, or the one it lies in; and where Node looks for modules above. A directory that
// is too wide to be one of code, such as a home directory, is not taken: then it is the script alone.
func (f *finder) packageOf(script string, marks ...string) {
	path, through, err := Resolve(f.from(script), f.look.Writable)
	if err != nil {
		return
	}
	if through != "" {
		f.note("what is around %s is not opened to the server, because the link %s leads to it, which the server can change: where it is meant, allow_read names it", path, through)
		return
	}
	const why = "the server's own files"
	take := func(dir string) { f.add(Need{Path: dir, Access: roots.Read, Execute: true, Why: why}) }
	if i := strings.Index(path+"/", "/node_modules/"); i >= 0 {
		take(path[:i] + "/node_modules")
		for _, name := range []string{"package.json", "deno.json", "deno.lock", "bunfig.toml"} { // what says how it is put together
			f.add(Need{Path: filepath.Join(path[:i], name), Access: roots.Read, Why: why})
		}
		return
	}
	dir := path
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		dir = filepath.Dir(path)
	}
	top := dir
	for at := dir; !tooWide(at); at = filepath.Dir(at) {
		if slices.ContainsFunc(marks, func(mark string) bool {
			_, err := os.Stat(filepath.Join(at, mark))
			return err == nil
		}) {
			top = at
			break
		}
	}
	if tooWide(top) {
		f.add(Need{Path: path, Access: roots.Read, Why: why})
	} else {
		take(top)
	}
	if slices.Contains(marks, "package.json") {
		for at := top; ; at = filepath.Dir(at) { // its own may be a link
			take(filepath.Join(at, "node_modules"))
			if at == filepath.Dir(at) {
				break
			}
		}
	}
}

// listed lets Bun see that there is a node_modules: it knows a directory only by the list of the one above.
func (f *finder) listed(name, script string) {
	path, through, err := Resolve(f.from(script), f.look.Writable)
	i := strings.Index(path, "/node_modules/")
	if name == "bun" && err == nil && through == "" && i > 0 && !tooWide(path[:i]) {
		f.add(Need{Path: path[:i], List: true, Why: "the names beside the server's own files"})
	}
}

// tooWide reports whether much else than one program lies in a directory.
func tooWide(dir string) bool {
	return roots.Broad(dir) || slices.Contains([]string{"/usr", "/usr/bin", "/usr/local", "/usr/local/bin", "/bin", "/opt", "/tmp", "/var/tmp", "/etc"}, dir)
}

var pythonVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^python([0-9]+\.[0-9]+)`)
})

// python adds where a Python reads its modules.
func (f *finder) python(called, real string) {
	read := func(path string) { f.add(Need{Path: path, Access: roots.Read, Execute: true, Why: "python"}) }
	if venv := filepath.Dir(filepath.Dir(called)); exists(filepath.Join(venv, "pyvenv.cfg")) {
		read(venv)
	}
	version := ""
	if m := pythonVersion().FindStringSubmatch(filepath.Base(real)); m != nil {
		version = m[1]
	}
	prefix := filepath.Dir(filepath.Dir(real))
	if tooWide(prefix) || !exists(filepath.Join(prefix, "lib", "python"+version)) { // it shares its prefix with others
		for _, lib := range []string{"lib", "lib64", "local/lib"} {
			read(filepath.Join(prefix, lib, "python3"))
			read(filepath.Join(prefix, lib, "python"+version))
		}
		read("/etc/python" + version)
	} else {
		read(prefix)
	}
	if home := f.look.Getenv("HOME"); home != "" && version != "" {
		read(filepath.Join(home, ".local/lib/python"+version+"/site-packages"))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
