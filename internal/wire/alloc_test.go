//go:build !race

package wire

import "testing"

// Under the race detector pools drop things at random, and allocations cannot be counted.
func TestScanAllocatesNothingForOrdinaryShapes(t *testing.T) {
	for _, kind := range []string{"string", "source", "dense"} {
		p := payload(kind, 1<<10)
		if n := testing.AllocsPerRun(200, func() {
			if _, err := Scan(p, Strict); err != nil {
				t.Fatal(err)
			}
		}); n >= 1 {
			t.Errorf("%s: %v allocations", kind, n)
		}
	}
}
