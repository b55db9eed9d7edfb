package sandbox

import (
	"errors"
	"testing"
)

// Where nothing can be enforced, nobody is told that something is.
func TestALevelIsEitherEnforcedOrAnError(t *testing.T) {
	level, err := Supported()
	if level.Enforced() != (err == nil) {
		t.Errorf("level %v and error %v", level, err)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v is not errors.ErrUnsupported", err)
	}
	for l, want := range map[Level]string{{}: "not confined by the kernel", {7}: "confined by the kernel (Landlock 7)"} {
		if got := l.String(); got != want {
			t.Errorf("%#v says %q, want %q", l, got, want)
		}
	}
}
