//go:build linux || darwin

package rootfs

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// accessList is the attribute that holds a file's access control list, on Linux.
const accessList = "system.posix_acl_access"

// keepAttributes copies the extended attributes as far as this process may. What would give the content rights, or is
// made from the content, is left out.
func keepAttributes(f, old *os.File) {
	control(f, func(to int) error {
		return control(old, func(from int) error {
			// What the directory gave the new file is not what the old one had.
			unix.Fremovexattr(to, accessList)
			for _, name := range attributes(from) {
				switch {
				case name == "security.capability", name == "security.ima", name == "security.evm", strings.HasPrefix(name, "system.") && name != accessList:
					continue
				}
				if value, err := attribute(from, name); err == nil {
					unix.Fsetxattr(to, name, value, 0)
				}
			}
			return nil
		})
	})
}

func attributes(fd int) []string {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return nil
	}
	buf := make([]byte, size)
	if size, err = unix.Flistxattr(fd, buf); err != nil {
		return nil
	}
	var list []string
	for name := range bytes.SplitSeq(buf[:size], []byte{0}) {
		if len(name) > 0 {
			list = append(list, string(name))
		}
	}
	return list
}

func attribute(fd int, name string) ([]byte, error) {
	size, err := unix.Fgetxattr(fd, name, nil)
	if err != nil || size == 0 {
		return nil, err
	}
	buf := make([]byte, size)
	size, err = unix.Fgetxattr(fd, name, buf)
	return buf[:max(size, 0)], err
}
