package pin

import (
	"bytes"
	"testing"

	"github.com/rootbound/rootbound/internal/unseen"
)

// What is read from a file and written again is the same, and shows all that it has.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"pins":[{"server":"s","runs":"r","kind":"tool","name":"n","since":"2026-11-30T00:00:00Z","definition":{"a":"\u202e<","b":1.50}}]}`))
	f.Add([]byte(`{"pins":[{"server":"s","runs":"","kind":"server","since":"2026-11-30T00:00:00Z","for":"/f","reviewed":true,"definition":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parse(text)
		if err != nil {
			return
		}
		once := format(entries)
		again, err := parse(once)
		if err != nil {
			t.Fatalf("%q is written as %q, which cannot be read: %v", text, once, err)
		}
		if twice := format(again); !bytes.Equal(once, twice) {
			t.Errorf("%q is written as\n%s\nand then as\n%s", text, once, twice)
		}
		if unseen.Any(string(once)) {
			t.Errorf("%q is written as %q, in which there is %s", text, once, unseen.Describe(string(once)))
		}
	})
}
