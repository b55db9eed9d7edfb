package config

import (
	"os"
	"path/filepath"

	"github.com/rootbound/rootbound/roots"
)

// System is where a process runs.
type System struct {
	// Env looks up an environment variable; it is os.Getenv.
	Env func(name string) string
	// Dir is the working directory, absolute.
	Dir string
	// GOOS is runtime.GOOS.
	GOOS string
	// Managed is the directory of the managed file. Empty is that of the system, /etc/rootbound.
	Managed string
}

// fileName is what our files are called, without the ending.
const fileName = "rootbound"

// FileNames are the names that the file of a layer can have in its directory; only one of them may be there.
func FileNames() []string { return []string{fileName + ".toml", fileName + ".json"} }

// managedDir returns the directory of the file that binds every user.
func (s System) managedDir() string {
	switch {
	case s.Managed != "":
		return s.Managed
	case s.GOOS == "windows":
		return s.under("ProgramData", `C:\ProgramData`, fileName)
	}
	return "/etc/rootbound"
}

// UserFile returns the user's file: the one that is there, else the TOML one, which need not be there.
func (s System) UserFile() (string, error) {
	file, _, err := s.pick(s.userDir())
	return file, err
}

func (s System) userDir() string {
	switch s.GOOS {
	case "windows":
		return s.under("APPDATA", "", fileName)
	case "darwin":
		return s.under("HOME", "", "Library", "Application Support", fileName)
	}
	if dir := s.Env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, fileName)
	}
	return s.under("HOME", "", ".config", fileName)
}

// under returns a directory beneath the one that a variable names, or nothing.
func (s System) under(variable, otherwise string, names ...string) string {
	dir := s.Env(variable)
	if dir == "" {
		dir = otherwise
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// projectDir is the top of the work tree, or the working directory where there is none.
func (s System) projectDir() string {
	if top, ok := roots.Workspace(s.Dir); ok {
		return top
	}
	return s.Dir
}

// pick returns the file of a layer: the one of rootbound.toml and rootbound.json that is there, or else the first, and
// both as candidates. Both at once is an error.
func (s System) pick(dir string) (file string, candidates []string, err error) {
	if dir == "" {
		return "", nil, nil
	}
	for _, name := range FileNames() {
		candidates = append(candidates, filepath.Join(dir, name))
	}
	toml, json := candidates[0], candidates[1]
	if !exists(json) {
		return toml, candidates, nil
	}
	if exists(toml) {
		return "", candidates, &Error{File: json, Msg: "there is " + toml + " beside it: keep one of them"}
	}
	return json, candidates, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// same reports whether two paths lead to one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
