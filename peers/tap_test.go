package peers

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// tap runs a command between its own standard streams and writes what passes to DIR/N/in and DIR/N/out, N counting its
// starts from 1. Its arguments are DIR and the command.
func tap(args []string) int {
	// Clients end a slow server with a signal; a tap ends with its command, which sees its input end.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	in, out, err := newRecording(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "tap:", err)
		return 1
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tap:", err)
		return 1
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tap:", err)
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "tap:", err)
		return 1
	}
	go func() {
		io.Copy(stdin, io.TeeReader(os.Stdin, in))
		stdin.Close()
	}()
	io.Copy(os.Stdout, io.TeeReader(stdout, out))
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

func newRecording(dir string) (in, out *os.File, err error) {
	for n := 1; ; n++ {
		d := filepath.Join(dir, strconv.Itoa(n))
		if err := os.Mkdir(d, 0o700); os.IsExist(err) {
			continue
		} else if err != nil {
			return nil, nil, err
		}
		if in, err = os.Create(filepath.Join(d, "in")); err != nil {
			return nil, nil, err
		}
		out, err = os.Create(filepath.Join(d, "out"))
		return in, out, err
	}
}

// recording is what passed a tap: one stream for each start of its command and each direction.
type recording []struct{ in, out []byte }

func readRecording(t *testing.T, dir string) recording {
	t.Helper()
	var r recording
	for n := 1; ; n++ {
		in, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(n), "in"))
		if os.IsNotExist(err) {
			return r
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(n), "out"))
		if err != nil {
			t.Fatal(err)
		}
		r = append(r, struct{ in, out []byte }{in, out})
	}
}
