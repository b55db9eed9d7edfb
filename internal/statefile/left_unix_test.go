//go:build unix

package statefile

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestMain is also a save that never ends, of the file that is named.
func TestMain(m *testing.M) {
	if path := os.Getenv("STATEFILE_SAVE"); path != "" {
		ReplaceIf(path, []byte("text"), func() error {
			os.Stdout.WriteString("about to\n")
			time.Sleep(time.Hour)
			return nil
		})
	}
	os.Exit(m.Run())
}

func TestWhatWasLeftBehindIsRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	save := exec.Command(os.Args[0])
	save.Env = append(os.Environ(), "STATEFILE_SAVE="+path)
	out, err := save.StdoutPipe()
	if err == nil {
		err = save.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer save.Wait()
	defer save.Process.Kill()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, temporary+"*"))
	if len(found) != 1 {
		t.Fatalf("a save has %q", found)
	}
	live := filepath.Base(found[0])

	long := time.Now().Add(-2 * leftBehind)
	for _, name := range []string{temporary + "1", ".rootbound-2", ".rootbound-backup", "x" + temporary + "3", temporary + "young"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
		if name != temporary+"young" {
			err = errors.Join(err, os.Chtimes(filepath.Join(dir, name), long, long))
		}
	}
	err = errors.Join(err, os.Chtimes(found[0], long, long), os.Symlink("file", filepath.Join(dir, temporary+"link")),
		os.Mkdir(filepath.Join(dir, temporary+"dir"), 0o700), os.Chtimes(filepath.Join(dir, temporary+"dir"), long, long),
		syscall.Mkfifo(filepath.Join(dir, temporary+"fifo"), 0o600), os.Chtimes(filepath.Join(dir, temporary+"fifo"), long, long))
	if err != nil {
		t.Fatal(err)
	}
	after := func(want ...string) {
		t.Helper()
		if err := Replace(path, []byte("new")); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("there is %q, want %q", names, want)
		}
	}
	stays := []string{"file", ".rootbound-2", ".rootbound-backup", "x" + temporary + "3", temporary + "young", temporary + "link", temporary + "dir", temporary + "fifo"}
	after(append(slices.Clone(stays), live)...) // however old it is, it is about to take its place
	save.Process.Kill()
	save.Wait()
	after(stays...)
}
