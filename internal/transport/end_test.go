package transport

import (
	"slices"
	"testing"
)

// What is held again while it is let go stays held, in its order, until it is let go once more.
func TestAHoldThatIsClosedWhileItOpens(t *testing.T) {
	var h hold
	var got []int
	add := func(n int) func() { return func() { got = append(got, n) } }
	h.close()
	h.pass(func() {
		h.close()
		add(1)()
	})
	h.pass(add(2))
	h.open()
	h.pass(add(3))
	if !slices.Equal(got, []int{1}) {
		t.Errorf("passed are %d while it is closed again", got)
	}
	h.open()
	h.pass(add(4))
	if !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("passed are %d", got)
	}
}
