package results_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/results"
)

// A check that never ends cannot be ended. So a server that has one schema after the other that takes for ever gets a few goroutines
// of ours, and no more. (They run until the tests end, so this one is the last.)
func TestChecksThatNeverEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for n := range 12 {
		text := fmt.Sprintf(`{"title":"%d","$defs":{`, n)
		for i := range 60 {
			text += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
		}
		text += `"d60":{}},"$ref":"#/$defs/d0"}`
		wg.Go(func() {
			if _, unusable := results.Valid([]byte(text), []byte(`{}`)); unusable == nil {
				t.Error("a value was checked against what takes for ever")
			}
		})
	}
	wg.Wait()
	if n := runtime.NumGoroutine() - before; n > 4 {
		t.Errorf("%d checks go on", n)
	}
}
