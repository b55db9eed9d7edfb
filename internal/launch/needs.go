package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// Look is where a command is looked up.
type Look struct {
	// Dir is the absolute directory that it starts in.
	Dir string
	// Getenv is its environment: PATH and what runtimes look at.
	Getenv func(string) string
	// Net adds what a program reads that connects to other hosts: whom to trust, and where names are looked up.
	Net bool
	// Writable says of a directory, by its path without links, whether what is started can write there; nil is nowhere. What
	// lies there can be other than it was, so it does not decide what is opened elsewhere.
	Writable func(dir string) bool
	// Tmp is a directory for what it keeps only for itself, as a cache; "" is none.
	Tmp string
	// Install says that the command is a package manager that is meant to install.
	Install bool
}

// Needs is what a command has to reach to run at all, besides its roots.
type Needs struct {
	// Command is what it comes to when what only chooses a program, and looks around for that, is taken away. Path is
	// absolute. It is started in place of the one that was looked at.
	Command Command
	// Files are what it reads and runs, each once, with why.
	Files []Need
	// Notes are for a person: what was not looked into.
	Notes []string
}

// Need is one file, or a directory with all that is beneath it.
type Need struct {
	Path    string
	Access  roots.Access
	Execute bool
	// List lets a directory, and those beneath it, be listed, also without Access.
	List bool
	// Why says what it belongs to: "node", "the dynamic linker", "the server's package".
	Why string
}

// Needs finds what the command needs. It looks at the disk, and starts nothing. Placeholders must have been filled. Also
// are further programs that it runs, by name or path.
//
// What it finds are programs, what they are scripts for, the libraries that they are linked with, the directories of their
// language's own modules, and the package that the server is in. It is an error where the program does not exist, or
// fetches itself from a registry when it is started.
func (c Command) Needs(l Look, also ...string) (Needs, error) {
	f := &finder{look: l}
	path, err := f.lookPath(c.Path)
	if err != nil {
		return Needs{}, err
	}
	f.needs.Command = c
	f.needs.Command.Path = path
	f.system()
	if l.Net {
		f.network()
	}
	if l.Install { // which built packages there are for this system
		for _, path := range []string{"/etc/os-release", "/usr/lib/os-release", "/etc/debian_version"} {
			f.add(Need{Path: path, Access: roots.Read, Why: "the installer"})
		}
	}
	if err := f.program(path, c.Args, true); err != nil {
		return Needs{}, err
	}
	for _, name := range also {
		path, err := f.lookPath(name)
		if err == nil {
			err = f.program(path, nil, false)
		}
		if err != nil {
			return Needs{}, err
		}
	}
	return f.needs, nil
}

type finder struct {
	look  Look
	needs Needs
	depth int
}

// system adds what nearly every program looks at, and what says nothing about anybody.
func (f *finder) system() {
	f.add(Need{Path: "/dev/null", Access: roots.Read | roots.Write, Why: "every program"})
	for _, path := range []string{
		"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
		"/etc/localtime", "/usr/share/zoneinfo",
		"/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version",
		"/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage", "/proc/sys/vm", "/proc/sys/kernel/osrelease",
		"/usr/lib/locale", "/usr/share/locale", "/etc/locale.alias",
	} {
		f.add(Need{Path: path, Access: roots.Read, Why: "every program"})
	}
}

// network adds what a program reads that connects to other hosts.
func (f *finder) network() {
	for _, path := range []string{
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls", "/etc/pki/ca-trust", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
		"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	} {
		f.add(Need{Path: path, Access: roots.Read, Why: "the network"})
	}
}

// add adds what is there. What is needed twice is needed with the rights of both.
func (f *finder) add(n Need) {
	if n.Path != "/proc/self" { // it is another directory for each process
		real, ok := f.follow(n.Path)
		if !ok {
			return
		}
		n.Path = real
	}
	if i := slices.IndexFunc(f.needs.Files, func(have Need) bool { return have.Path == n.Path }); i >= 0 {
		have := &f.needs.Files[i]
		have.Access |= n.Access
		have.Execute = have.Execute || n.Execute
		have.List = have.List || n.List
		return
	}
	if !exists(n.Path) || slices.ContainsFunc(f.needs.Files, func(have Need) bool {
		return strings.HasPrefix(n.Path, have.Path+"/") && have.Access&n.Access == n.Access && (have.Execute || !n.Execute) &&
			(!n.List || have.List || have.Access&roots.Read != 0)
	}) {
		return
	}
	f.needs.Files = append(f.needs.Files, n)
}

// follow returns what a path leads to. It is false where there is nothing, and where the program itself decides what: a
// link in a place where it can write may lead elsewhere only to a program.
func (f *finder) follow(path string) (string, bool) {
	real, through, err := Resolve(path, f.look.Writable)
	switch {
	case err != nil:
		return "", false
	case through != "" && !runnable(real):
		f.note("%s is not opened to the server, because the link %s leads to it, which the server can change: where it is meant, allow_read names it", real, through)
		return "", false
	}
	return real, true
}

// runnable reports whether there is a file that can be run as a program.
func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (f *finder) note(format string, args ...any) {
	f.needs.Notes = append(f.needs.Notes, fmt.Sprintf(format, args...))
}

// lookPath finds a program as a shell does.
func (f *finder) lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		path := f.from(name)
		if !runnable(path) {
			return "", fmt.Errorf("looking up %q: it is no program", name)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(f.look.Getenv("PATH")) {
		if path := f.from(filepath.Join(dir, name)); name != "" && runnable(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("looking up %q: it is not in PATH", name)
}

// from makes a path absolute.
func (f *finder) from(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(f.look.Dir, path)
}

const deepest = 8 // of programs that are scripts for programs

// program adds what the program at path needs when it is run with args. The first one is what is started.
func (f *finder) program(path string, args []string, first bool) error {
	if f.depth++; f.depth > deepest {
		return fmt.Errorf("looking into %q: it goes from script to script without an end", path)
	}
	defer func() { f.depth-- }()
	if real, ok := f.shim(path); ok {
		if path = real; first {
			f.needs.Command.Path = real
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("looking into the program %q: %w", path, bare(err))
	}
	if !runnable(real) {
		return fmt.Errorf("looking into the program %q: it is no program", path)
	}
	head, err := beginning(real)
	if err != nil {
		return fmt.Errorf("looking into the program %q: %w", path, bare(err))
	}
	name := ProgramName(path)
	f.add(Need{Path: real, Access: roots.Read, Execute: true, Why: name})
	if line, script := strings.CutPrefix(head, "#!"); script {
		line, _, _ = strings.Cut(line, "\n")
		interpreter, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		if interpreter == "" {
			return fmt.Errorf("looking into the program %q: its first line names no interpreter", path)
		}
		rest := []string{path}
		if arg = strings.TrimSpace(arg); arg != "" {
			rest = []string{arg, path}
		}
		if ProgramName(interpreter) == "env" { // it splits what the kernel gives it as one word
			rest = append(strings.Fields(strings.TrimPrefix(strings.TrimPrefix(arg, "-S"), "--split-string=")), path)
		}
		if err := runner(ProgramName(path)); err != nil && !f.look.Install {
			return err
		}
		if f.look.Writable != nil && f.look.Writable(filepath.Dir(real)) { // it names a program, and no more
			rest = append(rest[:envProgram(interpreter, rest)], path)
		}
		return f.program(interpreter, append(rest, args...), false)
	}
	f.link(real)
	return f.runtime(name, path, real, args)
}

// envProgram returns how many of a first line's words say which program is run, besides the interpreter: with env, those
// up to it.
func envProgram(interpreter string, words []string) int {
	if ProgramName(interpreter) != "env" {
		return 0
	}
	i := options(words, envValues, "").rest
	for i < len(words) && strings.Contains(words[i], "=") {
		i++
	}
	return min(i+1, len(words)-1)
}

// beginning returns the first line of a file, or a part of it.
func beginning(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b := make([]byte, 512)
	n, err := io.ReadFull(file, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(b[:n]), nil
}

func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// shim returns the program that stands behind one of pyenv, which would look for it in many places and with many
// programs: what is confined starts it directly.
func (f *finder) shim(path string) (string, bool) {
	dir, name := filepath.Split(path)
	top, ok := strings.CutSuffix(filepath.Clean(dir), "/shims")
	if !ok {
		return "", false
	}
	versions := []string{f.look.Getenv("PYENV_VERSION")}
	for dir := f.look.Dir; ; dir = filepath.Dir(dir) {
		versions = append(versions, firstLine(filepath.Join(dir, ".python-version")))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	versions = append(versions, firstLine(filepath.Join(top, "version")))
	for _, v := range versions {
		v, _, _ = strings.Cut(v, ":")
		if v == "" || strings.Contains(v, "/") {
			continue
		}
		real := filepath.Join(top, "versions", v, "bin", name)
		if _, err := os.Stat(real); err == nil {
			return real, true
		}
	}
	return "", false
}

func firstLine(path string) string {
	head, err := beginning(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(head, "\n")
	return strings.TrimSpace(line)
}
