package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// Every error has one form, and where nobody says more the way out of what is not allowed.
func TestComplaint(t *testing.T) {
	denied := fmt.Errorf("writing configuration %q: %w", "/c.toml", fs.ErrPermission)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errors.New("reading it: no"), "rootbound: error: reading it: no\n"},
		{usageError{Err: withHint(errors.New("no"), "do it")}, "rootbound: error: no\nrootbound: hint: do it\n"},
		{denied, "rootbound: error: writing configuration \"/c.toml\": permission denied\nrootbound: hint: look at who owns that, and at the rights of the directories above it\n"},
		{fmt.Errorf("writing it: %w", syscall.ENOSPC), "rootbound: error: writing it: " + syscall.ENOSPC.Error() + "\nrootbound: hint: make room there; `rootbound purge` lists what Rootbound keeps\n"},
		{fmt.Errorf("writing it: %w", syscall.EROFS), "rootbound: error: writing it: " + syscall.EROFS.Error() + "\nrootbound: hint: what is to be written lies on a file system that is mounted to be read only; HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME, say where that is\n"},
		{withHint(denied, "write elsewhere"), "rootbound: error: writing configuration \"/c.toml\": permission denied\nrootbound: hint: write elsewhere\n"},
	} {
		if got := complaint(tt.err); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
}
