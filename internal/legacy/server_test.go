package legacy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/legacy"
	"github.com/rootbound/rootbound/internal/wire"
)

// client is one that counts what it is asked, and never answers.
type client struct {
	can   bool
	asked int
}

func (c *client) Notify(*wire.Message) {}
func (c *client) CanAsk(string) bool   { return c.can }
func (c *client) Ask(context.Context, []exchange.Question, func([]exchange.Answer)) {
	c.asked++
}

// A question on the one line of a server says not which request it is for. Of requests without a session, which may be of several
// clients, none is asked what could be for another; who listens is told of it.
func TestWhichRequestCarriesAQuestion(t *testing.T) {
	session := exchange.NewSession(t.Context())
	for _, tt := range []struct {
		name    string
		session *exchange.Session
		can     []bool
		asked   []int // each client, and last who listens
	}{
		{"one client", nil, []bool{true}, []int{1, 0}},
		{"two clients", nil, []bool{true, true}, []int{0, 0, 1}},
		{"two clients of which one can", nil, []bool{false, true}, []int{0, 1, 0}},
		{"three clients of which two can", nil, []bool{true, false, true}, []int{0, 0, 0, 1}},
		{"two requests of a session", session, []bool{true, true}, []int{1, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			s := legacy.NewServer(legacy.ServerOptions{})
			ready := make(chan bool)
			s.Connect(wire.NewWriter(&out), func() { close(ready) })
			<-ready
			clients := make([]*client, len(tt.can)+1)
			for i := range clients {
				r := &exchange.Request{Msg: wire.NewRequest(fmt.Append(nil, i), "tools/call", nil), Session: tt.session}
				clients[i] = &client{can: i < len(tt.can) && tt.can[i]}
				if i == len(tt.can) {
					r.Msg = wire.NewRequest([]byte(`"listen"`), exchange.Listen, nil)
				}
				r.Caller = clients[i]
				s.Handle(t.Context(), r, func(exchange.Outcome) {})
			}
			s.Receive(wire.NewRequest([]byte("1"), "elicitation/create", nil), "")
			var asked []int
			for _, c := range clients {
				asked = append(asked, c.asked)
			}
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("asked were %v, want %v", asked, tt.asked)
			}
		})
	}
}

// greeted is a server whose handshake is complete, and whose next processes are told of it and of a level.
func greeted(t *testing.T) *legacy.Server {
	s := legacy.NewServer(legacy.ServerOptions{})
	ready := make(chan bool)
	out := wire.NewWriter(io.Discard)
	s.Connect(out, func() { close(ready) })
	<-ready
	for _, m := range []*wire.Message{
		wire.NewRequest([]byte("0"), "initialize", []byte("{}")), wire.NewNotification("notifications/initialized", nil),
		wire.NewRequest([]byte("1"), "logging/setLevel", []byte(`{"level":"info"}`)),
	} {
		s.Handle(t.Context(), &exchange.Request{Msg: m}, func(exchange.Outcome) {})
		if m.Kind() == wire.Request {
			s.Receive(wire.NewResult(m.ID(), []byte("{}")), "")
		}
	}
	s.Disconnect(out, errors.New("the process ended"))
	return s
}

// A server that says at once, and of nothing in particular, that it refuses it may answer the handshake as that is being said.
func TestAHandshakeThatIsRefusedAsItIsSaidAgain(t *testing.T) {
	s := greeted(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for s.Open() == 0 {
			runtime.Gosched()
		}
		s.Receive(wire.NewError(nil, wire.CodeInternal, "no", nil), "")
	})
	ready := make(chan bool)
	s.Connect(wire.NewWriter(io.Discard), func() { close(ready) })
	<-ready
	wg.Wait()
	if s.Connected() || s.Open() != 0 {
		t.Errorf("connected %t, %d open", s.Connected(), s.Open())
	}
}

// A process that is left as it answers the handshake leaves nothing open that it would have been asked behind that, nor a question that
// nobody would hear the answer to.
func TestAProcessThatIsLeftAsItAnswers(t *testing.T) {
	s := greeted(t)
	asks := make(chan context.Context, 1)
	listen := &exchange.Request{Msg: wire.NewRequest([]byte(`"listen"`), exchange.Listen, nil), Caller: heard(asks)}
	s.Handle(t.Context(), listen, func(exchange.Outcome) {})
	for range 30_000 {
		hello, ready := make(chan []byte, 1), make(chan bool)
		out := wire.NewWriterFunc(func(m *wire.Message) error {
			if m.Method() == "initialize" {
				hello <- m.ID()
			}
			return nil
		})
		s.Connect(out, func() { close(ready) })
		id := <-hello
		var wg sync.WaitGroup
		wg.Go(func() {
			s.Receive(wire.NewResult(id, []byte("{}")), "")
			s.Receive(wire.NewRequest([]byte("1"), "ping", nil), "")
		})
		wg.Go(func() { s.Disconnect(out, errors.New("it is left")) })
		wg.Wait()
		<-ready
		if n := s.Open(); n != 0 {
			t.Fatalf("%d requests are open, and there is no process", n)
		}
		select {
		case ctx := <-asks:
			if ctx.Err() == nil {
				t.Fatal("a question is open, and there is no process")
			}
		default:
		}
	}
}

// heard is a caller that answers nothing, and tells the contexts of what it is asked.
type heard chan context.Context

func (heard) Notify(*wire.Message) {}
func (heard) CanAsk(string) bool   { return true }
func (c heard) Ask(ctx context.Context, _ []exchange.Question, _ func([]exchange.Answer)) {
	c <- ctx
}
