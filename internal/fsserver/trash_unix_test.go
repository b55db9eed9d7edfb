//go:build unix

package fsserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trashID cuts the id out of the answer of delete_path.
func trashID(t *testing.T, answer, arg string) string {
	t.Helper()
	id, found := strings.CutPrefix(answer, "Successfully deleted "+arg+"\nTo bring it back: restore_path with the id ")
	if !found {
		t.Fatal(answer)
	}
	return id
}

func TestDeleteAndRestore(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "text", "R/dir/a": "a", "R/dir/deep/b": "b", "R/link": "-> f", "S/out": "-> $W/outside/f"}, Options{})
	before, list := w.tree("R"), w.use("list_directory", `{"path":"$W/R"}`)
	var ids []string
	for _, path := range []string{"f", "$W/R/dir", "link", "$W/S/out"} {
		answer := w.use("delete_path", `{"path":"`+path+`"}`)
		ids = append(ids, trashID(t, answer, path))
	}
	if got := w.use("list_directory", `{"path":"$W/R"}`); got != "" {
		t.Errorf("left, and shown: %q", got)
	}
	w.holds("outside", map[string]string{"f": canary})
	for i, id := range ids {
		want := "Successfully restored " + []string{"$W/R/f", "$W/R/dir", "$W/R/link", "$W/S/out"}[i]
		if got := w.use("restore_path", `{"id":"`+id+`"}`); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if got := w.use("list_directory", `{"path":"$W/R"}`); got != list {
		t.Errorf("restored: %q, want %q", got, list)
	}
	after := w.tree("R")
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s is %q, want %q", name, after[name], text)
		}
	}
}

func TestDeleteRefuses(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "text", "R/outdir": "-> ../outside", "O/kept": "o", "S/f": "s", "S/.rootbound-trash": "no directory"}, Options{})
	for path, want := range map[string]string{
		"gone":            "!ENOENT: no such file or directory, unlink '$W/R/gone'",
		"$W/R":            "!Access denied - an allowed directory, or one that holds it, stays where it is: $W/R",
		"$W/O/kept":       "!Access denied - the allowed directory $W/O is read-only: $W/O/kept",
		"$W/outside/f":    "!Access denied - path outside allowed directories: $W/outside/f not in $W/R, $W/S, $W/O",
		"$W/R/outdir/f":   "!Access denied - symlink target outside allowed directories, or missing: $W/R/outdir/f not in $W/R, $W/S, $W/O",
		"$W/S/f":          "!The trash cannot be used, so nothing was deleted: $W/S/.rootbound-trash: not a directory",
		"$W/R/f/x":        "!ENOTDIR: not a directory, realpath '$W/R/f/x'",
		"$W/R/../outside": "!Access denied - path outside allowed directories: $W/outside not in $W/R, $W/S, $W/O",
	} {
		if got := w.use("delete_path", `{"path":"`+path+`"}`); got != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got, want)
		}
	}
	w.holds("R", map[string]string{"f": "text", "outdir": "-> ../outside"})
	w.holds("outside", map[string]string{"f": canary})
}

func TestRestoreRefuses(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "old"}, Options{})
	id := trashID(t, w.use("delete_path", `{"path":"f"}`), "f")
	w.use("write_file", `{"path":"f","content":"new"}`)
	for id, want := range map[string]string{
		id:                  "!Destination already exists: $W/R/f",
		"":                  `!Nothing in the trash has the id "".`,
		"../../outside/f":   `!Nothing in the trash has the id "../../outside/f".`,
		"kabcdefg-aaaaaaaa": `!Nothing in the trash has the id "kabcdefg-aaaaaaaa".`,
	} {
		if got := w.use("restore_path", `{"id":"`+id+`"}`); got != want {
			t.Errorf("%s:\n got %s\nwant %s", id, got, want)
		}
	}
	if err := os.Remove(filepath.Join(w.w, "R/f")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Successfully restored $W/R/f", `!Nothing in the trash has the id "` + id + `".`} {
		if got := w.use("restore_path", `{"id":"`+id+`"}`); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
