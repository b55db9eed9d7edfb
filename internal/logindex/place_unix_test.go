//go:build unix

package logindex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/internal/calllog"
)

// TestOtherThingsInItsPlace: what is no ordinary file gives way to the index, and what a link leads to stays as it is.
func TestOtherThingsInItsPlace(t *testing.T) {
	link := func(content string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			victim := filepath.Join(t.TempDir(), "victim")
			if err := os.WriteFile(victim, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(victim, path); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if b, err := os.ReadFile(victim); err != nil || string(b) != content {
					t.Errorf("what the link leads to has %d bytes, %v", len(b), err)
				}
			})
		}
	}
	pipe := func(t *testing.T, path string) {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	directory := func(t *testing.T, path string) {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range suffixes {
		for _, tt := range []struct {
			name string
			put  func(t *testing.T, path string)
		}{{"link to nothing yet", link("")}, {"link to a text", link("not ours\n")}, {"pipe", pipe}, {"directory", directory}} {
			for _, running := range []bool{false, true} {
				name := tt.name + " as index" + suffix
				if running {
					if suffix != "" {
						continue // its descriptors are open
					}
					name += ", while it is used"
				}
				t.Run(name, func(t *testing.T) {
					f := newFixture(t)
					l := f.log("files")
					f.append(l, call("000001", "read", calllog.Allow, "/a"))
					if running {
						f.update()
					} else if err := f.x.Close(); err != nil {
						t.Fatal(err)
					}
					if err := os.Remove(f.path + suffix); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
					tt.put(t, f.path+suffix)
					if !running {
						f.reopen()
					}
					f.update()
					f.want(Query{Tool: "read"}, "files call read allow  000001")
					if len(f.notes) != 1 || !strings.Contains(f.notes[0], "no ordinary file") {
						t.Errorf("the index said %q, want one line", f.notes)
					}
				})
			}
		}
	}
}
