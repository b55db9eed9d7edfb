package modern

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// What a server answers in a way that does not exist is a refusal that its client hears, and not silence.
func TestAnswersThatAreRefused(t *testing.T) {
	questions := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"q%d":{"method":"roots/list"}`, i)
		}
		return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{` + b.String()[1:] + `}}}`
	}
	for name, tt := range map[string]struct{ answer, want string }{
		"in a batch":         {`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}]`, "it came in a batch"},
		"many questions":     {questions(exchange.MaxQuestions), `"q63"`},
		"too many questions": {questions(exchange.MaxQuestions + 1), "it asks 65 questions"},
		"a flood of them":    {questions(200_000), "it asks 200000 questions"},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(ServerOptions{})
			s.Connect(wire.NewWriter(new(bytes.Buffer)))
			m := wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"x"}`))
			got := ""
			s.Handle(t.Context(), &exchange.Request{Msg: m, Era: exchange.Modern}, func(o exchange.Outcome) { got = string(o.Msg.Bytes()) })
			a, err := wire.Scan([]byte(tt.answer), wire.Lenient)
			if err != nil {
				t.Fatal(err)
			}
			s.Receive(&a, "")
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %.300s, want %s", got, tt.want)
			}
		})
	}
}

// A subscription that its client cancels while another process takes the place of the one that had it is not made again there.
func TestASubscriptionIsCancelledWhileItIsMadeAgain(t *testing.T) {
	for _, again := range []bool{true, false} {
		var s *Server
		cancel := wire.NewNotification("notifications/cancelled", []byte(`{"requestId":1}`))
		s = NewServer(ServerOptions{Again: func(*wire.Message) bool {
			s.Handle(t.Context(), &exchange.Request{Msg: cancel, Era: exchange.Modern}, nil)
			return again
		}})
		first, second := wire.NewWriter(new(bytes.Buffer)), new(bytes.Buffer)
		s.Connect(first)
		var got []exchange.Outcome
		m := wire.NewRequest([]byte("1"), exchange.Listen, nil)
		s.Handle(t.Context(), &exchange.Request{Msg: m, Era: exchange.Modern}, func(o exchange.Outcome) { got = append(got, o) })
		s.Replace(first, errors.New("it is replaced"))
		out := wire.NewWriter(second)
		s.Connect(out)
		out.Flush()
		out.Wait()
		if len(got) != 1 || got[0].Msg != nil || s.Open() != 0 || len(s.resumed) != 0 || strings.Contains(second.String(), exchange.Listen) {
			t.Errorf("made again %t: its client got %v, open are %d, the server got %q", again, got, s.Open(), second)
		}
	}
}

// What is asked of a server that has ended is told how it ended, until there is another one.
func TestARequestBehindTheEndOfAServer(t *testing.T) {
	s := NewServer(ServerOptions{})
	ask := func() (got string) {
		m := wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"x"}`))
		s.Handle(t.Context(), &exchange.Request{Msg: m, Era: exchange.Modern}, func(o exchange.Outcome) { got = string(o.Msg.Bytes()) })
		return got
	}
	out := wire.NewWriter(new(bytes.Buffer))
	for _, tt := range []struct {
		then func()
		want string
	}{
		{func() {}, `"message":"rootbound: the server is not running"`},
		{func() { s.Connect(out); s.Disconnect(out, errors.New("it ended: exit status 7")) }, `"message":"rootbound: the server is not running: it ended: exit status 7"`},
		{func() { s.Disconnect(out, errors.New("starting it again: no such file")) }, `"message":"rootbound: the server is not running: starting it again: no such file"`},
		{func() { s.Connect(out) }, ""},
	} {
		tt.then()
		if got := ask(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
