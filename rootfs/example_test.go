//go:build unix

package rootfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// project makes a directory with a file, beside another file, and opens it.
func project() (fsys *rootfs.FS, set roots.Set, done func()) {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	dir := filepath.Join(top, "project")
	for name, text := range map[string]string{"project/README": "read me", "secret": "do not"} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "secret"), filepath.Join(dir, "link")); err != nil {
		log.Fatal(err)
	}
	root, err := roots.Resolve(dir, roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		log.Fatal(err)
	}
	set = roots.NewSet(root)
	fsys, err = rootfs.Open(set, rootfs.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return fsys, set, func() {
		fsys.Close()
		os.RemoveAll(top)
	}
}

// What leads outside is refused, by whatever way.
func Example() {
	fsys, _, done := project()
	defer done()
	for _, path := range []string{"README", "link", "../secret", "/etc/passwd"} {
		f, err := fsys.Open(path)
		if err != nil {
			fmt.Println(err, errors.Is(err, rootfs.OutsideRoots))
			continue
		}
		text, _ := io.ReadAll(f)
		f.Close()
		fmt.Printf("%s\n", text)
	}
	// Output:
	// read me
	// opening "link": outside the roots, or through a link that ends outside them or nowhere true
	// opening "../secret": outside the roots, or through a link that ends outside them or nowhere true
	// opening "/etc/passwd": outside the roots, or through a link that ends outside them or nowhere true
}

// A new content takes the place of the old one in one step.
func ExampleFS_Replace() {
	fsys, _, done := project()
	defer done()
	_, err := fsys.Replace(context.Background(), "README", rootfs.ReplaceOptions{}, func(w io.Writer, old *os.File) error {
		if _, err := io.Copy(w, old); err != nil {
			return err
		}
		_, err := io.WriteString(w, ", please")
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	f, err := fsys.Open("README")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	fmt.Printf("%s %v\n", text, err)
	// Output: read me, please <nil>
}

// Where will a path lead a program that uses plain paths?
func ExampleLocate() {
	_, set, done := project()
	defer done()
	dir := set.Dirs()[0].Path
	for _, name := range []string{"README", "link", "new/file"} {
		place, err := rootfs.Locate(set, filepath.Join(dir, name), rootfs.Process{})
		rel, _ := filepath.Rel(filepath.Dir(dir), place.Path)
		fmt.Println(name, rel, place.Inside, err)
	}
	// Output:
	// README project/README true <nil>
	// link secret false <nil>
	// new/file project/new/file true <nil>
}
