package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// startFault says why a server's program cannot be started. As an error it is for the model and for the client's person: with
// the way out, and without paths of this machine.
type startFault struct {
	program string // as it is written
	why     string // with %q for other
	other   string // a path in why
	hint    string
	beside  string // what else only a person reads
}

func (f *startFault) Error() string {
	text := f.text(filepath.Base(f.program), filepath.Base(f.other))
	if f.hint != "" {
		text += "; " + f.hint
	}
	return text
}

// told is for a person.
func (f *startFault) told() error {
	return withHint(errors.New(f.text(f.program, f.other)), f.hint+f.beside)
}

func (f *startFault) text(program, other string) string {
	return fmt.Sprintf("starting the server %q: %s", calllog.RedactText(program), f.because(other))
}

// reason is why alone, for a person.
func (f *startFault) reason() string { return f.because(f.other) }

func (f *startFault) because(other string) string {
	if f.other == "" {
		return f.why
	}
	return fmt.Sprintf(f.why, other)
}

// faultOf says why a command cannot be started as it is now; nil where nothing is known against it. There may be something to fill in
// later, and what would fetch a server is not what is started confined.
func faultOf(c launch.Command, set roots.Set, dir string, confined bool) *startFault {
	if _, installs := c.Install(); installs && confined {
		return nil
	}
	filled, err := c.Fill(set)
	if err != nil {
		return nil
	}
	return unstartable(filled, dir)
}

// unstartable says why the program of a filled command cannot be started in dir; nil where nothing is known against it. What it
// finds is so for certain: whatever else there may be is found out by starting it.
func unstartable(c launch.Command, dir string) *startFault {
	f := &startFault{program: c.Path}
	err := transport.LookPath(c.Path, dir)
	if filepath.Base(c.Path) == c.Path {
		if err == nil {
			return f.script(inPath(c.Path), c)
		}
		f.why, f.hint = "no directory of PATH has a program of this name", f.elsewhere(dir)
		f.beside = fmt.Sprintf("; PATH is %q", os.Getenv("PATH"))
		return f
	}
	path := c.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if err == nil {
		return f.script(path, c)
	}
	info, serr := os.Stat(path)
	switch {
	case errors.Is(serr, fs.ErrNotExist):
		f.missing(dir)
	case serr != nil:
		f.why, f.hint = "it cannot be looked at: "+bareText(serr), "let this user read its directory, or name another program"
	case info.IsDir():
		f.why, f.hint = "it is a directory", "name the program in it"
	case !info.Mode().IsRegular():
		f.why, f.hint = "it is no file", "name a program"
	case errors.Is(err, fs.ErrPermission):
		f.why, f.hint = "it is not executable", "make it so with `chmod +x`"
		if by := interpreterOf(path); by != "" {
			f.hint += fmt.Sprintf(", or write `%s` in front of it", by)
		}
	default:
		f.why, f.hint = bareText(err), "name a program that can be started"
	}
	return f
}

// missing is for a path where there is nothing.
func (f *startFault) missing(dir string) {
	f.why = "there is no such file"
	if strings.Contains(f.program, "://") {
		f.why, f.hint = "it is an address, not a program", "a server that is reached over HTTP is named with `--url URL`, without `--`"
		return
	}
	switch first := f.program[0]; {
	case first == '@':
		f.hint = "a package is started by its runner: write `npx -y` in front of it"
	case strings.ContainsAny(f.program, " \t"):
		f.hint = "the program and each of its arguments are words of their own, without quotes around all of them"
	case first == '~' || first == '$' || first == '%':
		f.hint = "nothing stands for a directory here, as no shell reads it: write the whole path"
	case filepath.IsAbs(f.program):
		f.hint = "write the path of a program that is there"
	default:
		f.hint = "a relative path is looked up where rootbound is started, and each client has a directory of its own for that: write the whole path"
		f.beside = fmt.Sprintf("; this time it is %q", dir)
	}
}

// comesWith is what has to be installed for a program that starts servers; "" where that is not known.
func comesWith(program string) string {
	switch program {
	case "npx", "npm", "node":
		return "Node.js"
	case "uvx", "uv":
		return "uv"
	case "bunx", "bun":
		return "Bun"
	case "python", "python3":
		return "Python"
	case "docker":
		return "Docker"
	case "pnpx":
		return "pnpm"
	case "pnpm", "yarn", "deno", "pipx", "podman", "tsx", "go", "java", "dotnet":
		return program
	}
	return ""
}

// elsewhere is the way out for a name that no directory of PATH has.
func (f *startFault) elsewhere(dir string) string {
	if strings.ContainsAny(f.program, " \t") {
		return "the program and each of its arguments are words of their own, without quotes around all of them"
	}
	find := "command -v"
	if runtime.GOOS == "windows" {
		find = "where"
	}
	hint := ""
	if info, err := os.Stat(filepath.Join(dir, f.program)); err == nil && info.Mode().IsRegular() {
		hint = "a file of the working directory is written with its directory: write the whole path. Else "
	} else if of := comesWith(launch.ProgramName(f.program)); of != "" {
		hint = fmt.Sprintf("install %s. Or, ", of)
	}
	return hint + fmt.Sprintf("if a terminal finds it, its PATH is another one than that of the client: write the whole path that `%s %s` prints there", find, printable(f.program))
}

// script looks at the first line of a program that is a script.
func (f *startFault) script(path string, c launch.Command) *startFault {
	if path == "" || runtime.GOOS == "windows" {
		return nil
	}
	line, ok := strings.CutPrefix(firstBytes(path), "#!")
	if !ok {
		return nil
	}
	line, _, whole := strings.Cut(line, "\n")
	interpreter, rest, _ := strings.Cut(strings.Trim(line, " \t"), " ")
	interpreter, more, _ := strings.Cut(interpreter, "\t")
	rest = strings.TrimSpace(more + " " + rest)
	name := strings.TrimSuffix(interpreter, "\r")
	if !whole || !filepath.IsAbs(name) {
		return nil
	}
	if strings.HasSuffix(line, "\r") && (name != interpreter || filepath.Base(name) == "env") {
		f.why, f.hint = "its lines end as those of Windows do, so no interpreter has the name in the first one", "save it with the line ends of Unix"
		return f
	}
	if _, err := os.Stat(interpreter); errors.Is(err, fs.ErrNotExist) {
		f.why, f.other, f.hint = "its first line names the interpreter %q, which is not there", interpreter, "install that, or write the one that is there in the first line or in front of the script"
		return f
	}
	program, _, _ := strings.Cut(rest, " ")
	if filepath.Base(interpreter) != "env" || program == "" || program[0] == '-' || strings.ContainsAny(program, "=/") || c.Env["PATH"] != "" {
		return nil // it looks up no name, or not in our PATH
	}
	if transport.LookPath(program, "") != nil {
		f.why, f.other, f.hint = "its first line wants the program %q, which no directory of PATH has", program,
			"install "+cmp.Or(comesWith(program), "it")+", or write the whole path of it in front of the script"
		f.beside = fmt.Sprintf("; PATH is %q", os.Getenv("PATH"))
		return f
	}
	return nil
}

// unstarted is an error of the system at the start, with what is known of it.
func unstarted(err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		hint = fmt.Sprintf("it is neither a program for this system (%s on %s) nor a script with a first line `#!`: get the one for this system, or write what runs it in front of it", runtime.GOOS, runtime.GOARCH)
	case errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "windows":
		hint = "the program is there, and what it is linked with is not: it was made for another system"
	case errors.Is(err, fs.ErrPermission):
		hint = "this user may not run it: look at the rights of its directories, and whether its file system is mounted noexec"
	default:
		return err
	}
	return withHint(err, hint)
}

// interpreterOf is what runs a file that is no program by itself, as its name says.
func interpreterOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".js", ".mjs", ".cjs":
		return "node"
	case ".ts", ".mts":
		return "npx tsx"
	case ".py":
		return "python3"
	case ".sh":
		return "sh"
	case ".jar":
		return "java -jar"
	case ".rb":
		return "ruby"
	}
	return ""
}

// inPath is where PATH has a program; "" where it is not known.
func inPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// firstBytes returns the beginning of a file; "" where it cannot be read.
func firstBytes(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	b := make([]byte, 256)
	n, _ := io.ReadFull(file, b)
	return string(b[:n])
}

// bareText is what the system says, without what it was asked for.
func bareText(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}
