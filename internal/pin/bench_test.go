package pin_test

import (
	"fmt"
	"testing"

	"github.com/rootbound/rootbound/internal/pin"
)

// BenchmarkSee is a list of 30 tools: one that is pinned, which waits for the disk, and one that is as pinned, with the files read.
func BenchmarkSee(b *testing.B) {
	var defs []pin.Definition
	for i := range 30 {
		defs = append(defs, tool(fmt.Sprint("tool", i), "Reads a file of a directory, and says what is in it, line by line."))
	}
	dir := b.TempDir()
	b.Run("first", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s := pin.Store{Pins: fmt.Sprintf("%s/p%d.json", dir, i), Waiting: dir + "/w.json", Lock: dir + "/lock"}
			if _, err := pin.NewPins(s, files).See(defs); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		s := pin.Store{Pins: dir + "/p0.json", Waiting: dir + "/w.json", Lock: dir + "/lock"}
		for b.Loop() {
			if _, err := pin.NewPins(s, files).See(defs); err != nil {
				b.Fatal(err)
			}
		}
	})
}
