package roots

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// projectFiles mark the top of a project that is under no version control.
var projectFiles = []string{"go.mod", "package.json", "pyproject.toml", "Cargo.toml"}

// Workspace returns the directory of the work that dir lies in: the nearest one upwards that version control (git, also a
// worktree or a submodule; hg; jj) says is its top, and where there is none the nearest one with a project file (go.mod,
// package.json, pyproject.toml, Cargo.toml, *.code-workspace). A broad directory is never one. Path is resolved.
func Workspace(dir string) (path string, ok bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", false
	}
	for _, marks := range []func(dir string) bool{isWorkTree, isProject} {
		for up := dir; ; up = filepath.Dir(up) {
			if marks(up) && !isBroad(up) {
				return up, true
			}
			if up == filepath.Dir(up) {
				break
			}
		}
	}
	return "", false
}

func isWorkTree(dir string) bool {
	for _, name := range []string{".hg", ".jj"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return true
		}
	}
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	if err != nil {
		return false
	}
	if info.IsDir() { // an empty one is no repository to git either
		_, err := os.Lstat(filepath.Join(git, "HEAD"))
		return err == nil
	}
	if !info.Mode().IsRegular() {
		return false
	}
	f, err := os.OpenFile(git, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	line, _, _ := bufio.NewReader(f).ReadLine() // "gitdir: " and a path: a worktree or a submodule
	return strings.HasPrefix(string(line), "gitdir:")
}

func isProject(dir string) bool {
	for _, name := range projectFiles {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(256)
		for _, name := range names {
			if strings.HasSuffix(name, ".code-workspace") {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}
