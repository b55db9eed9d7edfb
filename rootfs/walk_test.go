package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// walkAll walks and returns every path, with a "/" behind that of a directory, and what its Err is.
func walkAll(t testing.TB, f *FS, path string, o WalkOptions) ([]string, Walked) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	w, err := f.Walk(t.Context(), path, o, func(d *Directory) []Entry {
		mu.Lock()
		defer mu.Unlock()
		line := d.Path + "/"
		if d.Err != nil {
			line += " " + string(codeOf(d.Err))
		}
		seen = append(seen, line)
		for _, e := range d.Entries {
			if !e.Type.IsDir() {
				seen = append(seen, beneathOf(d.Path, e.Name))
			}
		}
		return d.Entries
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	return seen, w
}

func TestWalk(t *testing.T) {
	w := tree(t, map[string]string{
		"R/f": "", "R/a/b/c/deep": "", "R/a/g": "", "R/empty/": "", "R/up": "->..", "R/self": "->.", "R/a/link": "->../f",
		"R/out": "->../outside", "outside/x": "", "R/secret/deep/x": "", "R/a/b/secret": "",
	})
	r := filepath.Join(w, "R")
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		for _, tt := range []struct {
			name, start string
			files       Options
			options     WalkOptions
			want        string
			walked      Walked
		}{
			{
				name: "all", start: r,
				want:   "/ a/ a/b/ a/b/c/ a/b/c/deep a/b/secret a/g a/link empty/ f out secret/ secret/deep/ secret/deep/x self up",
				walked: Walked{Entries: 15, Directories: 7},
			},
			{
				name: "one worker beneath a link", start: "self/a", options: WalkOptions{Workers: 1, Unsorted: true},
				want: "/ b/ b/c/ b/c/deep b/secret g link", walked: Walked{Entries: 6, Directories: 3},
			},
			{
				name: "two levels", start: r, options: WalkOptions{MaxDepth: 2},
				want:   "/ a/ a/g a/link empty/ f out secret/ self up",
				walked: Walked{Entries: 11, Directories: 4, TooDeep: 2},
			},
			{
				name: "denied", start: r,
				files:  Options{Deny: func(name string) bool { return name == "secret" || name == "a/b" }},
				want:   "/ a/ a/b/+denied a/g a/link empty/ f out secret/+denied self up",
				walked: Walked{Entries: 10, Directories: 5, Unreadable: 2},
			},
			{
				name: "budget", start: "a", options: WalkOptions{MaxEntries: 2, Workers: 1},
				want: "/ g", walked: Walked{Entries: 2, Directories: 1, Cut: true},
			},
			{
				name: "budget that is enough", start: "a/b/c", options: WalkOptions{MaxEntries: 1},
				want: "/ deep", walked: Walked{Entries: 1, Directories: 1},
			},
		} {
			f := open(t, tt.files, dir(t, r, roots.ReadWrite))
			seen, walked := walkAll(t, f, tt.start, tt.options)
			got := strings.Join(strings.Fields(strings.ReplaceAll(strings.Join(seen, "|"), " ", "+")), "")
			got = strings.ReplaceAll(got, "|", " ")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
			}
			if walked != tt.walked {
				t.Errorf("%s: %+v, want %+v", tt.name, walked, tt.walked)
			}
		}
	})
}

// Each root in a root has its own rights, and one that allows nothing is a hole.
func TestWalkNestedRoots(t *testing.T) {
	w := tree(t, map[string]string{
		"R/f": "f", "R/hole/x": "", "R/a/inner/y": "", "R/a/inner/hole/z": "", "R/a/secret": "s", "R/a/b/c/d/e/f": "",
	})
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		var asked sync.Map
		deny := func(name string) bool { asked.Store(name, true); return false }
		f := open(t, Options{Deny: deny}, dir(t, filepath.Join(w, "R"), roots.ReadWrite), dir(t, filepath.Join(w, "R/hole"), 0),
			dir(t, filepath.Join(w, "R/a/inner"), roots.ReadOnly), dir(t, filepath.Join(w, "R/a/inner/hole"), 0),
			dir(t, filepath.Join(w, "R/a/secret"), 0))
		got, _ := walkAll(t, f, filepath.Join(w, "R"), WalkOptions{})
		want := []string{"/", "a/", "a/b/", "a/b/c/", "a/b/c/d/", "a/b/c/d/e/", "a/b/c/d/e/f", "a/inner/", "a/inner/hole/ outside_roots",
			"a/inner/y", "a/secret", "f", "hole/ outside_roots"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if _, ok := asked.Load("hole"); !ok {
			t.Error("what is in the inner root was not asked for by its name there")
		}
		f.Walk(t.Context(), "a", WalkOptions{}, func(d *Directory) []Entry {
			if file, err := d.Open("secret"); d.Path == "" && !errors.Is(err, OutsideRoots) {
				t.Errorf("opening a file that is a hole: %v, %v", file, err)
			}
			return nil
		})
	})
}

func TestDirectoryOpen(t *testing.T) {
	w := tree(t, map[string]string{"R/d/f": "content", "R/d/link": "->f", "R/d/sub/x": "", "R/d/key": "", "R/g": ""})
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{Deny: func(name string) bool { return name == "d/key" }}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		var kept *Directory
		_, err := f.Walk(t.Context(), "d", WalkOptions{MaxDepth: 1}, func(d *Directory) []Entry {
			kept = d
			for name, want := range map[string]error{
				"link": OutsideRoots, "sub": IsDirectory, "sub/x": InvalidPath, "../g": InvalidPath, "..": InvalidPath, ".": InvalidPath,
				"": InvalidPath, "none": NotFound, "key": Denied, "\x00": InvalidPath, ".rootbound-trash": Denied,
			} {
				if file, err := d.Open(name); !errors.Is(err, want) {
					t.Errorf("Open(%q) = %v, %v; want %v", name, file, err, want)
				}
			}
			file, err := d.Open("f")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if b, err := io.ReadAll(file); string(b) != "content" || err != nil {
				t.Errorf("read %q, %v", b, err)
			}
			if info, err := d.Stat("link"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("Stat(link) = %v, %v", info, err)
			}
			if info, err := d.Stat("f"); err != nil || info.Size() != 7 {
				t.Errorf("Stat(f) = %v, %v", info, err)
			}
			return []Entry{{Name: "..", Type: fs.ModeDir}, {Name: "f"}}
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kept.Open("f"); !errors.Is(err, NotFound) {
			t.Errorf("after the visit: %v", err)
		}
		if _, err := f.Walk(t.Context(), "g", WalkOptions{}, nil); !errors.Is(err, NotDirectory) {
			t.Errorf("walking a file: %v", err)
		}
		if _, err := f.Walk(t.Context(), "../x", WalkOptions{}, nil); !errors.Is(err, OutsideRoots) {
			t.Errorf("walking outside: %v", err)
		}
		// A visitor cannot lead the walk out.
		seen := 0
		f.Walk(t.Context(), "d", WalkOptions{Workers: 1}, func(d *Directory) []Entry {
			if seen++; d.Depth == 0 {
				return []Entry{{Name: "..", Type: fs.ModeDir}, {Name: "sub/..", Type: fs.ModeDir}, {Name: "link", Type: fs.ModeDir}, {Name: "", Type: fs.ModeDir}}
			}
			if d.Err == nil {
				t.Errorf("%q was entered", d.Path)
			}
			return nil
		})
		if seen != 5 {
			t.Errorf("%d visits", seen)
		}
	})
}

// A walk ends with its context, from wherever.
func TestWalkCancelled(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("R/%d/%d/f", i%20, i)] = ""
	}
	w := tree(t, files)
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for _, workers := range []int{1, 4} {
			ctx, cancel := context.WithCancel(t.Context())
			walked, err := f.Walk(ctx, ".", WalkOptions{Workers: workers}, func(d *Directory) []Entry {
				if d.Depth == 2 {
					cancel()
				}
				return d.Entries
			})
			if !errors.Is(err, context.Canceled) || walked.Directories < 3 || walked.Directories > 100 {
				t.Errorf("%d workers: %+v, %v", workers, walked, err)
			}
		}
	})
}

// Parents come before children, whose visitors see what theirs left.
func TestWalkValues(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("R/%d/%d/%d/f", i%3, i%10, i)] = ""
	}
	w := tree(t, files)
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		walked, err := f.Walk(t.Context(), ".", WalkOptions{Workers: 8}, func(d *Directory) []Entry {
			d.Value = d.Path
			if d.Parent != nil && path.Join(d.Parent.Value.(string), path.Base(d.Path)) != d.Path {
				t.Errorf("the parent of %q is %q", d.Path, d.Parent.Value)
			}
			if !slices.IsSortedFunc(d.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
				t.Errorf("%q is not sorted", d.Path)
			}
			return d.Entries
		})
		if err != nil || walked.Entries != 3+30+300+300 {
			t.Errorf("%+v, %v", walked, err)
		}
	})
}

func BenchmarkWalk(b *testing.B) {
	w := tree(b, nil)
	for i := range 100 {
		d := filepath.Join(w, fmt.Sprintf("R/%d", i))
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(d, fmt.Sprintf("file-%d", j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	r := filepath.Join(w, "R")
	b.Run("WalkDir", func(b *testing.B) {
		for b.Loop() {
			if err := filepath.WalkDir(r, func(string, fs.DirEntry, error) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, by := range map[string]implementation{"kernel": best, "osRoot": osRoot} {
		f, err := Open(roots.NewSet(dir(b, r, roots.ReadWrite)), Options{by: by})
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Walk(b.Context(), r, WalkOptions{}, func(d *Directory) []Entry { return d.Entries }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
