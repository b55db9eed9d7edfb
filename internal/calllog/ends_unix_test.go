//go:build !windows

package calllog

import (
	"os"
	"testing"
)

// TestReadEndsOnly reads the ends of a log of a terabyte, of which the disk has only these: who read what is between would
// not come back.
func TestReadEndsOnly(t *testing.T) {
	now := someTime
	log := create(t, t.TempDir(), "s", &now)
	if err := os.Truncate(log.Path(), 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"behind zeros", "1", "2"} {
		appendAll(t, log, Record{Kind: Note, Text: text})
	}
	ends, err := ReadEnds(log.Path(), 4096)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(ends.Last); ends.Start.Server != "s" || n != 2 || ends.Last[0].Text != "1" || ends.Last[1].Text != "2" || ends.Whole {
		t.Errorf("got %+v", ends)
	}
}
