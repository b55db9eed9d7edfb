//go:build !windows

package calllog

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestFileLimit runs out of room in a real file system call: the limit of a file's size, in a process of its own.
func TestFileLimit(t *testing.T) {
	const dirVar = "CALLLOG_TEST_LIMITED_DIR"
	dir := os.Getenv(dirVar)
	if dir == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFileLimit$", "-test.v")
		cmd.Env = append(os.Environ(), dirVar+"="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	log, err := Create(dir, Record{Server: "s"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var old, limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limit = old
	limit.Cur = 4000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	written := 1
	for err = nil; err == nil; written++ {
		err = log.Append(&Record{Kind: Call, Reason: "some text to fill the file with"})
	}
	written-- // the last one failed
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("appending over the limit: got %v, want %v", err, syscall.EFBIG)
	}
	sound(t, log.Path(), written, Running)
	if err := log.Append(&Record{Kind: Call, Reason: "some text to fill the file with"}); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("appending again: got %v, want %v", err, syscall.EFBIG)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := log.Append(&Record{Kind: Note}); err != nil {
		t.Errorf("appending when there is room again: %v", err)
	}
	if err := log.Close(0, ""); err != nil {
		t.Error(err)
	}
	sound(t, log.Path(), written+2, Ended)
}

// TestFullDevice appends where there is no room at all and nothing can be taken back.
func TestFullDevice(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	log := newLog(f, f.Name(), "s", Options{Now: clock()})
	for range 2 {
		if err := log.Append(&Record{Kind: Note}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v, want %v", err, syscall.ENOSPC)
		}
	}
	if err := log.Close(0, ""); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("closing: got %v, want %v", err, syscall.ENOSPC)
	}
}
