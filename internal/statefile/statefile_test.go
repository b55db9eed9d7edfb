package statefile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "file")
	for _, text := range []string{"first", "second", ""} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the file has %q, %v, want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("a new file has the mode %v", info.Mode())
	}
	// A file stays where a link leads, and as it may be read.
	link := filepath.Join(dir, "link")
	if runtime.GOOS == "windows" {
		return
	}
	if err := errors.Join(os.Symlink(path, link), os.Chmod(path, 0o640), Replace(link, []byte("third"))); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "third" {
		t.Errorf("through a link the file has %q", got)
	}
	if info, err = os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	// What fails leaves nothing behind.
	if err := Replace(filepath.Join(path, "beneath"), nil); err == nil {
		t.Error("a file has another one in it")
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestReplaceIf(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	changed := errors.New("it changed")
	for _, tt := range []struct {
		text  string
		still error
		want  string
	}{{"first", nil, "first"}, {"second", changed, "first"}, {"third", nil, "third"}} {
		if err := ReplaceIf(path, []byte(tt.text), func() error { return tt.still }); !errors.Is(err, tt.still) {
			t.Errorf("got %v, want %v", err, tt.still)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != tt.want {
			t.Errorf("the file has %q, %v, want %q", got, err, tt.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

func TestPutLike(t *testing.T) {
	dir := t.TempDir()
	like, path := filepath.Join(dir, "like"), filepath.Join(dir, "copy")
	if err := errors.Join(os.WriteFile(like, nil, 0o600), os.Chmod(like, 0o640)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(like)
	if err != nil {
		t.Fatal(err)
	}
	if err := PutLike(path, []byte("text"), info); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(path); err != nil || now.Mode() != info.Mode() || now.Size() != 4 {
		t.Errorf("the copy is %v, %v", now, err)
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	lock, file := filepath.Join(dir, "state", "lock"), filepath.Join(dir, "count")
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			err := Locked(lock, func() error {
				text, _ := os.ReadFile(file)
				n, _ := strconv.Atoi(string(text))
				return Replace(file, []byte(strconv.Itoa(n+1)))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if text, err := os.ReadFile(file); err != nil || string(text) != "30" {
		t.Errorf("30 changes made %q, %v", text, err)
	}
	failed := errors.New("no")
	if err := Locked(lock, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
