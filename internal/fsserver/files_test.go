package fsserver

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tree makes files beneath a new directory, as grow does, and returns its real path.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	w, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	grow(t, w, files)
	return w
}

// grow puts files into a directory. A name that ends in a slash is a directory, a text that begins with "-> " is where a link
// leads, and one with "=> " which file it is another name of, with $W for the directory.
func grow(t testing.TB, w string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path, text := filepath.Join(w, filepath.FromSlash(name)), files[name]
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		err := os.MkdirAll(dir, 0o755)
		link, isLink := strings.CutPrefix(text, "-> ")
		hard, isHard := strings.CutPrefix(text, "=> ")
		switch {
		case err != nil || strings.HasSuffix(name, "/"):
		case isLink:
			err = os.Symlink(strings.ReplaceAll(link, "$W", w), path)
		case isHard:
			err = os.Link(strings.ReplaceAll(hard, "$W", w), path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// old makes all in a tree as if it had been made an hour ago, and returns the tree.
func old(t testing.TB, w string) string {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(w, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, at, at))
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
