package gosdk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Guard returns a transport that starts a server behind a guard of its own: `rootbound run OPTIONS -- SERVER`. The options
// are those of that command, such as "--root", "/home/me/project" or "--confine"; without any the boundary is the
// directories among the arguments of a server that is known, or else the project of the working directory. For calls that
// write, and those of which nothing is known, the guard asks for a person's yes: through the client, where that has an
// ElicitationHandler, and in any terminal (rootbound approve). With "--preset", "boundary" it asks nobody.
//
// The guard is a process, so the program rootbound has to be installed: an error wraps exec.ErrNotFound when it is not
// found. Command of the transport may be changed before it is connected; its standard error is that of this process,
// since there the guard says what holds.
//
// Closing the session ends the guard, waits for it and reaps it, and the guard does that with the server. When this
// process ends in any other way, the guard notices and ends with the server.
func Guard(server []string, options ...string) (*mcp.CommandTransport, error) {
	if len(server) == 0 {
		return nil, errors.New("starting a server behind a guard: its command is empty")
	}
	program, err := exec.LookPath("rootbound")
	if err != nil {
		return nil, fmt.Errorf("finding the guard: %w; install it: go install github.com/rootbound/rootbound/cmd/rootbound@latest", err)
	}
	command := exec.Command(program, slices.Concat([]string{"run"}, options, []string{"--"}, server)...)
	command.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: command}, nil
}
