package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// platform is one for which there is a program.
type platform struct{ os, arch string }

var host = platform{runtime.GOOS, runtime.GOARCH}

// platforms are all, in the order that they are made in.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// file is the name of its program.
func (p platform) file() string {
	if p.os == "windows" {
		return "rootbound.exe"
	}
	return "rootbound"
}

// maxSize is what a program may have, in bytes.
const maxSize = 20_000_000

// root is the module of the program.
const root = "github.com/rootbound/rootbound"

// inlined are the packages in which calls are inlined: those that a message passes through, and what they are made of. All others
// are smaller without, by a tenth of the program.
var inlined = []string{
	"runtime", "internal/runtime/...", "internal/bytealg", "internal/sync", "internal/poll", "syscall", "bytes", "unicode/utf8",
	"github.com/go-json-experiment/json/...",
	root + "/rootfs", root + "/internal/wire", root + "/internal/exchange", root + "/internal/legacy", root + "/internal/modern",
	root + "/internal/guard", root + "/internal/calllog", root + "/internal/transport",
}

// program is what was built for a platform.
type program struct {
	platform
	data []byte
	info *debug.BuildInfo
	mods []dependency // what it is made of, beside our own
}

// origin is what a release is made of.
type origin struct {
	version string    // as packages have it, 1.2.3; of a commit without a tag, the go command's version of it
	commit  string    // its hash
	time    time.Time // of the commit: every file of the release has this one
	golang  string    // the version of Go
}

// committed refuses a checkout with changes, unless it is for a try.
func (r *release) committed() error {
	out, err := r.output(nil, "git", "status", "--porcelain")
	if err != nil {
		return fmt.Errorf("looking at the checkout: %w", err)
	}
	if len(out) > 0 && !r.dirty {
		return fmt.Errorf("looking at the checkout: there are changes in no commit, of which nobody could make this again; commit them, or try with --dirty:\n%s", out)
	}
	return nil
}

// build builds the program of a platform below dir and checks that it is what it should be.
func (r *release) build(p platform, dir string) (*program, error) {
	name := filepath.Join(dir, p.os+"-"+p.arch, p.file())
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	// Neither a directory of this machine nor its time gets into the program: -trimpath, no build id, and of the repository
	// what the go command itself reads of the commit.
	args := []string{"build", "-mod=readonly", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid= -funcalign=4", "-gcflags=all=-l"}
	for _, packages := range inlined {
		args = append(args, "-gcflags="+packages+"=")
	}
	if _, err := r.output(p.env(), "go", append(args, "-o", abs, "./cmd/rootbound")...); err != nil {
		return nil, err
	}
	b := &program{platform: p}
	if b.data, err = os.ReadFile(name); err != nil {
		return nil, err
	}
	if b.info, err = buildinfo.Read(bytes.NewReader(b.data)); err != nil {
		return nil, err
	}
	if err := r.check(b); err != nil {
		return nil, err
	}
	if b.mods, err = r.dependencies(b); err != nil {
		return nil, err
	}
	return b, nil
}

// env is the environment in which the go command works for a platform: what is set here, a setting of this machine does not
// change.
func (p platform) env() []string {
	drop := []string{"GOEXPERIMENT", "GOFIPS140", "GODEBUG", "GOWASM"}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(drop, name)
	})
	return append(env, "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOFLAGS=-buildvcs=true") // with a value, so that none of the user's file is read
}

// check reads in the program itself how it was built.
func (r *release) check(b *program) error {
	set := map[string]string{}
	for _, s := range b.info.Settings {
		set[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"GOOS": b.os, "GOARCH": b.arch, "CGO_ENABLED": "0", "-trimpath": "true", "-buildmode": "exe", "-compiler": "gc", "GOEXPERIMENT": "", "-tags": "",
	} {
		if set[key] != want {
			return fmt.Errorf("it was built with %s=%q, and not %q: see go env", key, set[key], want)
		}
	}
	if set["vcs.modified"] == "true" && !r.dirty {
		return errors.New("the checkout was changed meanwhile")
	}
	at, err := time.Parse(time.RFC3339, set["vcs.time"])
	if err != nil {
		return fmt.Errorf("reading the time of its commit: %w", err)
	}
	o := origin{packageVersion(b.info.Main.Version), set["vcs.revision"], at.UTC(), b.info.GoVersion}
	if r.origin == (origin{}) {
		r.origin = o
	}
	if r.origin != o {
		return fmt.Errorf("it is of %v, and the first one of %v: the checkout was changed meanwhile", o, r.origin)
	}
	here, err := r.output(nil, "go", "env", "GOMOD", "GOROOT", "GOMODCACHE")
	if err != nil {
		return err
	}
	for path := range strings.Lines(string(here)) {
		path = strings.TrimSuffix(strings.TrimSpace(path), "go.mod")
		if bytes.Contains(b.data, []byte(strings.TrimSuffix(path, string(filepath.Separator))+string(filepath.Separator))) {
			return fmt.Errorf("it holds %q, which is a directory of this machine", path)
		}
	}
	if b.os == "linux" {
		if err := static(b.data); err != nil {
			return err
		}
	}
	if len(b.data) > maxSize {
		return fmt.Errorf("it has %d bytes, and may have %d: what is new in it? (go tool nm -size)", len(b.data), maxSize)
	}
	return nil
}

// static refuses a program that needs others, or has what only a debugger reads.
func static(data []byte) error {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err == nil && (len(libraries) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })) {
		err = fmt.Errorf("it is not static: it needs %q", libraries)
	}
	if err == nil && (f.Section(".symtab") != nil || f.Section(".debug_info") != nil) {
		err = errors.New("it is not stripped")
	}
	return err
}

// packageVersion is a version of the go command as packages have it: without the v, and without a plus, since registries
// take what is behind it for no part of the version.
func packageVersion(v string) string {
	v = strings.TrimPrefix(v, "v")
	if strings.Contains(v, "-") {
		return strings.Replace(v, "+", ".", 1)
	}
	return strings.Replace(v, "+", "-", 1)
}

// output runs a program in the checkout and returns what it prints.
func (r *release) output(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = r.repo, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}
