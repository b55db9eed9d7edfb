//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// What is held back in a directory that is open cannot be had, moved or replaced, and the rest of it is as it was.
func TestParts(t *testing.T) {
	needLandlock(t)
	probe := buildProbe(t)
	held := map[string]string{
		"read .env": "EACCES", "write .env": "EACCES", "remove .env": "EBUSY", "put another file in the place of .env": "EBUSY", "link .env": "EXDEV",
		"change the mode of .env": "EROFS", "look into keys": "EACCES", "read a file of keys": "EACCES",
		"make a hook": "EROFS", "write a hook": "EROFS", "remove a hook": "EROFS", "read a hook": "yes",
		"move .git away": "EBUSY", "move the hooks away": "EBUSY", "mount over the hooks": "EPERM", "unmount the hooks": "EPERM", "make the hooks writable": "EPERM",
		"write beside the hooks": "yes", "replace beside the hooks": "yes", "write in the directory": "yes",
	}
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			for _, excepts := range []bool{false, true} {
				w := newWorld(t, probe, uid)
				in := filepath.Join(w.top, "in")
				for _, dir := range []string{".git", ".git/hooks", "keys"} {
					if err := os.Mkdir(filepath.Join(in, dir), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				for _, file := range []string{".env", ".git/hooks/old", ".git/hooks/gone", "keys/key"} {
					if err := os.WriteFile(filepath.Join(in, file), []byte("text"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				err := filepath.WalkDir(in, func(path string, _ os.DirEntry, err error) error {
					if err == nil {
						err = os.Lchown(path, uid, uid)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				o := w.order()
				o.Args, o.Leak = []string{"parts", in}, ""
				if excepts {
					o.Policy.Excepts = []Except{
						{Path: filepath.Join(in, "keys")}, {Path: filepath.Join(in, ".git/hooks"), Access: roots.ReadOnly}, {Path: filepath.Join(in, ".env")},
					}
				}
				stdout, stderr, code := run(t, uid, o)
				if code != 0 || stderr != "" {
					t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
				}
				got := outcomes(stdout)
				level := got["confined"] // which the guard says, behind or before what the program says
				delete(got, "confined")
				if strings.Contains(level, "seccomp + mounts") != excepts {
					t.Fatalf("with excepts %v the level is %q", excepts, level)
				}
				if excepts {
					if diff := cmp.Diff(held, got); diff != "" {
						t.Errorf("what is possible (-want +got):\n%s", diff)
					}
					if b, err := os.ReadFile(filepath.Join(in, ".env")); err != nil || string(b) != "text" {
						t.Errorf("outside, .env is %q, %v", b, err)
					}
					continue
				}
				for what, result := range got { // without them nothing is held back, so the table above shows something
					mounting := []string{"mount over the hooks", "unmount the hooks", "make the hooks writable"}
					if result != "yes" && !slices.Contains(mounting, what) && what != "put another file in the place of .env" && what != "link .env" && what != "change the mode of .env" {
						t.Errorf("without excepts, to %s: %s", what, result)
					}
				}
			}
		})
	}
}
