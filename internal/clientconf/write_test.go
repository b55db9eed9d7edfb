package clientconf

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func wrapped(t *testing.T, c *Client, path string) (*File, *Draft) {
	t.Helper()
	f := Read(c, c.placeOf(path), path)
	if f == nil {
		t.Fatalf("%s is not there", path)
	}
	d, err := f.Draft()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Servers {
		if err := d.Wrap(s, program); err != nil {
			t.Fatal(err)
		}
	}
	return f, d
}

const oneServer = `{"mcpServers":{"a":{"command":"x"}}}`

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWriteKeepsLinkAndMode(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles", "mcp.json"), filepath.Join(dir, ".cursor", "mcp.json")
	put(t, target, oneServer, 0o640)
	path := target
	if runtime.GOOS != "windows" {
		path = link
		if err := errors.Join(os.Mkdir(filepath.Dir(link), 0o755), os.Symlink(filepath.Join("..", "dotfiles", "mcp.json"), link)); err != nil {
			t.Fatal(err)
		}
	}
	c, _ := Lookup("cursor")
	f, d := wrapped(t, c, path)
	if err := errors.Join(f.Save(true), d.Write()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, target); got != string(d.Bytes()) || got == oneServer {
		t.Errorf("the file holds %s", got)
	}
	if got := get(t, f.Backup()); got != oneServer || filepath.Dir(f.Backup()) != filepath.Dir(path) {
		t.Errorf("the copy %s holds %s", f.Backup(), got)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is %v, %v", info, err)
		}
		for _, name := range []string{target, f.Backup()} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%s is %v, %v", name, info.Mode(), err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", ".rootbound-*")); left != nil {
		t.Errorf("%q is left", left)
	}
}

func TestWriteOfWhatWasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".cursor", "mcp.json")
	put(t, path, oneServer, 0o600)
	c, _ := Lookup("cursor")
	_, d := wrapped(t, c, path)
	put(t, path, `{}`, 0o600)
	if err := d.Write(); !errors.Is(err, ErrChanged) {
		t.Errorf("Write: %v", err)
	}
	if got := get(t, path); got != `{}` {
		t.Errorf("the file holds %s", got)
	}
}

func TestSaveKeepsTheFirstCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".cursor", "mcp.json")
	put(t, path, oneServer, 0o600)
	c, _ := Lookup("cursor")
	f, d := wrapped(t, c, path)
	if err := errors.Join(f.Save(true), d.Write()); err != nil {
		t.Fatal(err)
	}
	again, _ := wrapped(t, c, path)
	if err := again.Save(true); err != nil || get(t, again.Backup()) != oneServer {
		t.Errorf("the copy holds %s, %v", get(t, again.Backup()), err)
	}
	if err := again.Save(false); err != nil || get(t, again.Backup()) == oneServer {
		t.Errorf("the copy holds %s, %v", get(t, again.Backup()), err)
	}
	if err := errors.Join(again.Unsave(), again.Unsave()); err != nil {
		t.Error(err)
	}
}

// Cline's own writers take a directory beside the file as a lock.
func TestWriteTakesTheClientsLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings", "cline_mcp_settings.json")
	put(t, path, oneServer, 0o600)
	c, _ := Lookup("cline")
	_, d := wrapped(t, c, path)
	if err := os.Mkdir(path+".lock", 0o755); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- d.Write() }()
	select {
	case err := <-done:
		t.Fatalf("it was written under the client's lock: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if got := get(t, path); got != oneServer {
		t.Fatalf("the file holds %s under the client's lock", got)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".lock"); !os.IsNotExist(err) {
		t.Errorf("our own lock is left: %v", err)
	}
	if got := get(t, path); !strings.Contains(got, program) {
		t.Errorf("the file holds %s", got)
	}
}

// What a client that was killed left behind is no lock.
func TestWriteTakesOverAStaleLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".claude.json")
	put(t, path, oneServer, 0o600)
	c, _ := Lookup("claude-code")
	_, d := wrapped(t, c, path)
	old := time.Now().Add(-2 * lockStale)
	if err := errors.Join(os.Mkdir(path+".lock", 0o755), os.Chtimes(path+".lock", old, old)); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".lock"); !os.IsNotExist(err) {
		t.Errorf("the lock is left: %v", err)
	}
}
