package gosdk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The examples fit on a page. That they do what they are for is tested with clients and servers of others, in peers.
func TestExamplesAreShort(t *testing.T) {
	names, err := filepath.Glob("examples/*/main.go")
	if err != nil || len(names) != 2 {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n >= 60 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}
