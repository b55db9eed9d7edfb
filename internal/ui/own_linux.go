package ui

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// own says why a connection is none of our user's. The kernel's table of connections has the user of each end. Where there is
// no such table nothing is known, and the token decides.
func own(c net.Conn) error {
	here, err1 := netip.ParseAddrPort(c.LocalAddr().String())
	there, err2 := netip.ParseAddrPort(c.RemoteAddr().String())
	if err1 != nil || err2 != nil {
		return errors.New("bug: it has no address")
	}
	name := "/proc/net/tcp"
	if here.Addr().Is6() {
		name = "/proc/net/tcp6"
	}
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil: // no descriptors are left, or the like
		return fmt.Errorf("it cannot be known whose it is: %w", err)
	}
	defer f.Close()
	uid, err := userOf(f, there, here)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be known whose it is: %w", err)
	case uid != os.Geteuid() && uid != 0:
		return fmt.Errorf("it is of another user (%d)", uid)
	}
	return nil
}

// userOf finds the user of the end at from of a connection to to. An end that was closed
// may be of user 0 in the table, whoever closed it.
func userOf(table io.Reader, from, to netip.AddrPort) (int, error) {
	a, b := kernelAddress(from), kernelAddress(to)
	s := bufio.NewScanner(table)
	for s.Scan() {
		f := strings.Fields(s.Text()) // sl local_address rem_address st tx:rx tr:when retrnsmt uid …
		if len(f) <= 7 || !strings.EqualFold(f[1], a) || !strings.EqualFold(f[2], b) {
			continue
		}
		uid, err := strconv.Atoi(f[7])
		if err == nil && uid == 0 && f[3] != established { // of an end that was closed many kernels say that it is root's
			return 0, errLeft
		}
		return uid, err
	}
	if err := s.Err(); err != nil {
		return 0, err
	}
	return 0, errLeft
}

// errLeft is why nobody is found.
var errLeft = errors.New("it is gone already")

// established is how the table writes that both ends are there.
const established = "01"

// kernelAddress is how the table writes an address: by words of the machine.
func kernelAddress(at netip.AddrPort) string {
	ip := at.Addr().AsSlice()
	for i := 0; i+4 <= len(ip); i += 4 {
		binary.BigEndian.PutUint32(ip[i:], binary.NativeEndian.Uint32(ip[i:]))
	}
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(ip)), at.Port())
}
