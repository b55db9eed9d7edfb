package legacy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
