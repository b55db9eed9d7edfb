//go:build unix

package statefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that another one was put in the place of has another stamp, also where both are of one size and one moment.
func TestStamps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	at := time.Now()
	put := func(text string) Stamp {
		t.Helper()
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return StampOf(path)
	}
	if none := StampOf(path); none != (Stamp{}) {
		t.Errorf("a file that is not there has the stamp %v", none)
	}
	a := put("a")
	if again := StampOf(path); again != a {
		t.Errorf("the same file has the stamps %v and %v", a, again)
	}
	if b := put("b"); b == a {
		t.Errorf("two files have the stamp %v", a)
	}
}
