package sandbox

import (
	"errors"
	"flag"
	"testing"
)

var update = flag.Bool("update", false, "write the tables and profiles of testdata anew")

// Where nothing can be enforced, nobody is told that something is.
func TestALevelIsEitherEnforcedOrAnError(t *testing.T) {
	level, err := Supported()
	if level.Enforced() != (err == nil) {
		t.Errorf("level %v and error %v", level, err)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v is not errors.ErrUnsupported", err)
	}
	for l, want := range map[Level]string{
		{}:                           "not confined by the kernel",
		{Landlock: 7}:                "confined by the kernel (Landlock 7)",
		{Seatbelt: true, Unix: true}: "confined: Seatbelt (which its authors have never run on a Mac), no network, Unix sockets",
		{Landlock: 7, Seccomp: true}: "confined: landlock abi 7 + seccomp, no network",
		{Landlock: 5, Seccomp: true, Net: Net{Proxy: 1}}:              "confined: landlock abi 5 + seccomp, network through our proxy, signals not stopped",
		{Landlock: 9, Seccomp: true, Net: Net{All: true}, Unix: true}: "confined: landlock abi 9 + seccomp, whole network, Unix sockets",
	} {
		if got := l.String(); got != want {
			t.Errorf("%#v says %q, want %q", l, got, want)
		}
	}
}
