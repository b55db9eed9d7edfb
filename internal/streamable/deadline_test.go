package streamable

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A deadline that is moved on is not met early, one that is moved back is not met late, and one that was met is met no more when it is
// moved or taken away.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		free := make(chan struct{}, 1)
		free <- struct{}{}
		c := newCounted(ours, free)
		read := func() (time.Duration, error) {
			began := time.Now()
			_, err := c.Read(make([]byte, 1))
			return time.Since(began), err
		}
		late := func(want time.Duration) {
			t.Helper()
			if took, err := read(); took != want || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a read ended after %v with %v, want %v", took, err, want)
			}
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		late(10 * time.Second)
		late(0)
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		c.SetReadDeadline(time.Now().Add(time.Second))
		late(time.Second)
		c.SetReadDeadline(time.Now().Add(-time.Hour))
		late(0)
		c.SetReadDeadline(time.Now().Add(time.Second))
		late(time.Second)
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.SetReadDeadline(time.Time{})
		go func() {
			time.Sleep(time.Minute)
			theirs.Write([]byte("x"))
		}()
		if took, err := read(); took != time.Minute || err != nil {
			t.Errorf("without a deadline a read ended after %v with %v", took, err)
		}
		go func() { // while it is waited for
			time.Sleep(time.Second)
			c.SetReadDeadline(time.Now())
		}()
		late(time.Second)
		c.SetDeadline(time.Now().Add(time.Second))
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write ended with %v", err)
		}
		c.SetDeadline(time.Now().Add(time.Hour))
		if c.Close() != nil || len(free) != 0 {
			t.Error("closing it frees nothing")
		}
		if err := c.SetDeadline(time.Now().Add(time.Hour)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("behind its end a deadline was set with %v", err)
		}
		if _, err := read(); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("behind its end a read ended with %v", err)
		}
	})
}
