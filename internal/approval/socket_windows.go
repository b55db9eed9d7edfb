package approval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// listen opens a named pipe for its user alone. Its name cannot be guessed.
func listen(_, name, secret string) (l net.Listener, socket, own string, err error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, "", "", err
	}
	socket = `\\.\pipe\rootbound-` + name + "-" + secret
	l, err = winio.ListenPipe(socket, &winio.PipeConfig{SecurityDescriptor: fmt.Sprintf("D:P(A;;GA;;;%s)", user.User.Sid)})
	return l, socket, "", err
}

// onlyMine takes a directory in the user's own as it is.
func onlyMine(dir string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%q is not a directory", dir)
	}
	return nil
}

func dial(ctx context.Context, socket string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, socket)
}

// gone reports whether an error of dial says that nobody is there any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// sweep has nothing to do: a pipe goes with its process.
func sweep(string, string) {}

// visitor knows no more than that it could open the pipe, which only its user can.
func visitor(net.Conn, []int) (string, error) { return "a process of yours", nil }
