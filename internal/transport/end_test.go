package transport

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
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

// A server that is closed while it is being started again is not started any more.
func TestARestartOfWhatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := 0
		p := &Process{}
		p.init(ProcessOptions{})
		p.dial = func() (link, error) {
			started++
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			l := &piped{in: inW, read: outR, out: wire.NewWriter(inW), over: make(chan struct{}), left: make(chan struct{})}
			go func() {
				io.Copy(io.Discard, inR) // it answers nothing
				outW.Close()
				close(l.over)
			}()
			t.Cleanup(func() { inW.Close() })
			return l, nil
		}
		var closed, answered bool
		r := &exchange.Request{Msg: wire.NewRequest([]byte("1"), "ping", nil), Session: exchange.NewSession(t.Context())}
		p.Handle(t.Context(), r, func(exchange.Outcome) { // it fails when the old one is left, and the new one is not there
			p.Close()
			closed = true
			p.hold.pass(func() { answered = true })
		})
		synctest.Wait()
		err := p.Restart(func() {})
		synctest.Wait()
		if !closed || started != 1 || err == nil || !answered {
			t.Errorf("closed is %t, %d were started, restarting said %v, and what waits is let go is %t", closed, started, err, answered)
		}
	})
}
