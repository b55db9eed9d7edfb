package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
)

// gone reports whether a program that is named by an absolute path is not there.
func gone(program string) bool {
	if !filepath.IsAbs(program) {
		return false
	}
	_, err := os.Stat(program)
	return errors.Is(err, fs.ErrNotExist)
}

// programPath is the rootbound that clients are to start: one that is still there after the next upgrade.
func (a *app) programPath(given string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			var info fs.FileInfo
			if info, err = os.Stat(path); err == nil && !info.Mode().IsRegular() {
				err = errors.New("it is no file")
			}
		}
		if err == nil && !clientconf.IsRootbound(path) {
			err = errors.New("it has to be called rootbound, by which unwrap knows it")
		}
		if err != nil {
			return "", usageError{Err: fmt.Errorf("looking at --program %q: %w", given, err)}
		}
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", withHint(fmt.Errorf("finding this program: %w", err), "name it with --program FILE")
	}
	name := "rootbound"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	var candidates []string
	for _, dir := range filepath.SplitList(a.env("PATH")) {
		if filepath.IsAbs(dir) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	me, err := os.Stat(self)
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	for _, path := range append(candidates, self) {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, me) && launch.Lasting(path, os.TempDir()) {
			return path, nil
		}
	}
	hint := "put it, or a link to it, into a directory of PATH that stays, or name it with --program FILE"
	if strings.Contains(filepath.ToSlash(self), "/_npx/") {
		hint = "install it with `npm install --global rootbound`, and write the same command without npx; or name another one with --program FILE"
	}
	return "", withHint(fmt.Errorf("this program is %q, in a directory for temporary files, of a cache or of one version, where it may be gone tomorrow or after its next version", self), hint)
}
