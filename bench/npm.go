package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// npmShim measures what a start by the npm package takes, against Node alone: for each version of Node that is here, which
// are one that starts the program beside itself, and one that becomes it.
func npmShim(b *bench) ([]result, error) {
	shim, err := b.npmPackage()
	if err != nil {
		return nil, fmt.Errorf("laying out the npm package: %w", err)
	}
	var results []result
	for _, n := range []struct{ name, path string }{
		{"node", "node"},
		{"node 22", filepath.Join(b.repo, "peers", "conformance", "node_modules", "node-"+node(runtime.GOOS)+"-"+node(runtime.GOARCH), "bin", "node")},
	} {
		path, err := exec.LookPath(n.path)
		if err != nil {
			return nil, fmt.Errorf("finding Node (.ci/peers installs two): %w", err)
		}
		guarded := []string{path, shim, "run", "--preset", "boundary", "--root", b.root, "--log", filepath.Join(b.dir, "log"), "--", "/bin/sh", "-c", lightServer}
		var alone, version, first []float64
		for range starts {
			for _, s := range []struct {
				took    *[]float64
				measure func() (time.Duration, error)
			}{
				{&alone, func() (time.Duration, error) { return b.wholeRun(path, "-e", "0") }},
				{&version, func() (time.Duration, error) { return b.wholeRun(path, shim, "version") }},
				{&first, func() (time.Duration, error) { return b.firstByte(guarded) }},
			} {
				d, err := s.measure()
				if err != nil {
					return nil, err
				}
				*s.took = append(*s.took, float64(d)/1e6)
			}
		}
		results = append(results,
			summary(n.name+" -e 0", "ms", alone),
			ratio(n.name+", rootbound version ÷ node -e 0", version, alone).within(1.5),
			ratio(n.name+", rootbound run to the server's first byte ÷ node -e 0", first, alone).within(1.5),
		)
	}
	return results, nil
}

// npmPackage lays the package out as npm does, with the guard as the program, and returns what Node runs.
func (b *bench) npmPackage() (string, error) {
	modules := filepath.Join(b.dir, "npm", "node_modules")
	own, platform := filepath.Join(modules, "rootbound", "bin"), filepath.Join(modules, "@rootbound", node(runtime.GOOS)+"-"+node(runtime.GOARCH))
	for _, dir := range []string{own, platform} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	text, err := os.ReadFile(filepath.Join(b.repo, "release", "npm", "rootbound.cjs"))
	if err != nil {
		return "", err
	}
	shim := filepath.Join(own, "rootbound.cjs")
	if err := os.WriteFile(shim, text, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(platform, "package.json"), []byte(`{"name":"program","version":"1.0.0"}`), 0o644); err != nil {
		return "", err
	}
	return shim, os.Link(b.guard, filepath.Join(platform, "rootbound"))
}

// node is a system or an architecture in Node's words.
func node(name string) string {
	switch name {
	case "windows":
		return "win32"
	case "amd64":
		return "x64"
	}
	return name
}

// wholeRun runs a command to its end.
func (b *bench) wholeRun(args ...string) (time.Duration, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+b.home)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("running %q: %w\n%s", args, err, out)
	}
	return time.Since(began), nil
}
