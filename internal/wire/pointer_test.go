package wire

import "testing"

func TestPointer(t *testing.T) {
	at := []string{"a/b", "~", "0", "~1", ""}
	if got, want := Pointer(at...), "/a~1b/~0/0/~01/"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, e := range []string{"a~1b", "~0", "0", "~01", ""} {
		if got := PointerName(e); got != at[i] {
			t.Errorf("%q stands for %q, want %q", e, got, at[i])
		}
	}
	if got := Pointer(); got != "" {
		t.Errorf("the whole is %q", got)
	}
}
