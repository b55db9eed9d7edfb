package rootfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

// BenchmarkOpen compares opening at depth 5 with os.Open of the same path.
func BenchmarkOpen(b *testing.B) {
	w := tree(b, map[string]string{"R/1/2/3/4/f": "", "R/link": "->1/2/3/4/f"})
	path := filepath.Join(w, "R/1/2/3/4/f")
	d := dir(b, filepath.Join(w, "R"), roots.ReadWrite)
	run := func(name string, open func() (*os.File, error)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f, err := open()
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
	run("os.Open", func() (*os.File, error) { return os.Open(path) })
	for _, i := range implementations() {
		f, err := Open(roots.NewSet(d), Options{by: i.by})
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		name := i.name
		run(name, func() (*os.File, error) { return f.Open(path) })
		run(name+"-relative", func() (*os.File, error) { return f.Open("1/2/3/4/f") })
		run(name+"-link", func() (*os.File, error) { return f.Open("link") })
	}
}

func BenchmarkLocate(b *testing.B) {
	w := tree(b, map[string]string{"R/1/2/3/4/f": ""})
	set := roots.NewSet(dir(b, filepath.Join(w, "R"), roots.ReadWrite))
	path := filepath.Join(w, "R/1/2/3/4/f")
	for b.Loop() {
		if p, err := Locate(set, path, Process{}); err != nil || !p.Inside {
			b.Fatal(p, err)
		}
	}
}
