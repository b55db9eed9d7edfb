package ui

import (
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel's table as it is on a small machine: the ends of a connection over the first version of the protocol and the second.
const table4 = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:C351 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0000000000000000 20 4 30 10 -1
   4: 0100007F:C352 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1
`

const table6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   2: 00000000000000000000000001000000:C350 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 3 1 0000000000000000 20 4 30 10 -1
`

func TestUserOfAConnection(t *testing.T) {
	a4, b4 := netip.MustParseAddrPort("127.0.0.1:50000"), netip.MustParseAddrPort("127.0.0.1:8080")
	a6, b6 := netip.MustParseAddrPort("[::1]:50000"), netip.MustParseAddrPort("[::1]:8080")
	if uid, err := userOf(strings.NewReader(table4), a4, b4); uid != 1001 || err != nil {
		t.Errorf("the client is user %d, %v", uid, err)
	}
	if uid, err := userOf(strings.NewReader(table4), b4, a4); uid != 1000 || err != nil {
		t.Errorf("the server is user %d, %v", uid, err)
	}
	if uid, err := userOf(strings.NewReader(table6), a6, b6); uid != 1002 || err != nil {
		t.Errorf("the client is user %d, %v", uid, err)
	}
	if uid, err := userOf(strings.NewReader(table4), netip.MustParseAddrPort("127.0.0.1:50001"), b4); uid != 0 || err != nil {
		t.Errorf("root is user %d, %v", uid, err)
	}
	if uid, err := userOf(strings.NewReader(table4), netip.MustParseAddrPort("127.0.0.1:50002"), b4); err == nil {
		t.Errorf("an end that was closed, which anybody may have, is of user %d", uid)
	}
	if uid, err := userOf(strings.NewReader(table4), a4, netip.MustParseAddrPort("127.0.0.1:8081")); err == nil {
		t.Errorf("a connection that is not there is of user %d", uid)
	}
}

// A connection of another user is ended before anything is read from it.
func TestOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	var told reports
	s := serve(t, Options{Report: told.report})
	at := netip.MustParseAddrPort(strings.TrimPrefix(s.at, "http://"))
	visit := func(uid int) (n int, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never given back: the thread ends
			unix.Setfsuid(uid)     // whose the sockets of this thread are
			fd, e := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if e != nil {
				err = e
				return
			}
			defer unix.Close(fd)
			if err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
				return
			}
			unix.Write(fd, []byte("GET / HTTP/1.1\r\nHost: "+at.String()+"\r\nConnection: close\r\n\r\n"))
			n, err = unix.Read(fd, make([]byte, 1000))
		}()
		<-done
		return n, err
	}
	for range 3 * tellAtOnce {
		if n, _ := visit(65534); n > 0 {
			t.Errorf("another user got %d bytes", n)
		}
	}
	if n, err := visit(0); n <= 0 || err != nil {
		t.Errorf("our user got %d bytes, %v", n, err)
	}
	if got := told.take(); len(got) != tellAtOnce || !strings.Contains(got[0], "another user (65534)") && !strings.Contains(got[0], errLeft.Error()) {
		t.Errorf("told was %q", got)
	}
}

// FuzzUserOf reads tables that no kernel writes: it finds nobody in them, or who stands there.
func FuzzUserOf(f *testing.F) {
	f.Add(table4)
	f.Add("sl\n 0: 0100007F:C350 0100007F:1F90 01 0:0 0:0 0 x\n")
	f.Fuzz(func(t *testing.T, table string) {
		uid, err := userOf(strings.NewReader(table), netip.MustParseAddrPort("127.0.0.1:50000"), netip.MustParseAddrPort("127.0.0.1:8080"))
		if err == nil && !strings.Contains(table, strconv.Itoa(uid)) {
			t.Errorf("user %d is not in %q", uid, table)
		}
	})
}
