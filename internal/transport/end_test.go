package transport

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// A server that was started again and does not read what it is told of before holds up neither its end nor who waits for the start.
func TestARestartedServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := 0
		p := &Process{}
		p.init(ProcessOptions{})
		p.dial = func() (link, error) {
			started++
			reads := started == 1
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			l := &piped{read: outR, out: wire.NewWriter(inW), over: make(chan struct{}), left: make(chan struct{})}
			l.in = closer(sync.OnceFunc(func() {
				inR.Close()
				outW.Close()
				close(l.over)
			}))
			if reads {
				go func() {
					for in := bufio.NewScanner(inR); in.Scan(); {
						if strings.Contains(in.Text(), `"id":1`) {
							io.WriteString(outW, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`+"\n")
						}
					}
				}()
			}
			return l, nil
		}
		s := exchange.NewSession(t.Context())
		greeted := make(chan struct{})
		hello := wire.NewRequest([]byte("1"), "initialize", []byte(`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`))
		p.Handle(t.Context(), &exchange.Request{Msg: hello, Session: s}, func(exchange.Outcome) { close(greeted) })
		<-greeted
		p.Handle(t.Context(), &exchange.Request{Msg: wire.NewNotification("notifications/initialized", nil), Session: s}, nil)
		restarted, ready, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			p.Restart(func() { close(ready) })
			close(restarted)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		go func() {
			p.Close()
			close(closed)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		for what, done := range map[string]chan struct{}{"the restart": restarted, "who waits for it": ready, "the end": closed} {
			select {
			case <-done:
			default:
				t.Errorf("%s hangs", what)
			}
		}
	})
}

type closer func()

func (c closer) Close() error {
	c()
	return nil
}
