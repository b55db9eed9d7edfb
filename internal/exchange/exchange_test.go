package exchange

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/wire"
)

func request(t *testing.T, era Era, line string) *Request {
	t.Helper()
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Msg: &m, Era: era, Session: NewSession(t.Context())}
}

func TestDeclareRootsEditsOnlyWhereTheEraDeclares(t *testing.T) {
	for _, tt := range []struct {
		name        string
		era         Era
		line        string
		declaration string
		want        string
	}{
		{"handshake, added", Legacy, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"x":1}}`, `{"listChanged":true}`,
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{"listChanged":true}},"x":1}}`},
		{"handshake, as it is", Legacy, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{"listChanged":true}}}}`, `{"listChanged":true}`, ""},
		{"handshake, taken out", Legacy, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{},"a":{}}}}`, "",
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"a":{}}}}`},
		{"another message", Legacy, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"listChanged":true}`, ""},
		{"modern, exactly {}", Modern, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}}`, `{"listChanged":true}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`},
	} {
		r := request(t, tt.era, tt.line)
		var d []byte
		if tt.declaration != "" {
			d = []byte(tt.declaration)
		}
		if tt.want == "" {
			tt.want = tt.line
		}
		if got := DeclareRoots(r, d).Msg.Bytes(); string(got) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestInterimAndInputRequiredAgree(t *testing.T) {
	r := request(t, Modern, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	want := []Question{{Key: "roots", Method: "roots/list"}, {Key: "k\"2", Method: "elicitation/create", Params: []byte(`{"message":"ok?"}`)}}
	o := Outcome{Msg: wire.NewResult([]byte("1"), InputRequired(want, "st"))}
	got, ok := Interim(r, o)
	if !ok || len(got) != 2 || got[0].Key != "roots" || string(got[0].Params) != "{}" || got[1].Key != want[1].Key || string(got[1].Params) != string(want[1].Params) {
		t.Errorf("got %v, %v", got, ok)
	}
	if _, ok := Interim(r, Result(r, []byte(`{"content":[]}`))); ok {
		t.Error("a complete result counts as interim")
	}
	if _, ok := Interim(request(t, Legacy, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`), o); ok {
		t.Error("a handshake server's result counts as interim")
	}
}

func TestCheckedHoldsAHandlerToOneReply(t *testing.T) {
	var reports []string
	h := Checked(HandlerFunc(func(_ context.Context, r *Request, reply func(Outcome)) {
		reply(Cancelled)
		reply(Cancelled)
	}), func(err error) { reports = append(reports, err.Error()) })
	n := 0
	h.Handle(t.Context(), request(t, Legacy, `{"jsonrpc":"2.0","id":1,"method":"a"}`), func(Outcome) { n++ })
	h.Handle(t.Context(), request(t, Legacy, `{"jsonrpc":"2.0","method":"a"}`), func(Outcome) { n++ })
	if n != 1 || len(reports) != 3 || !strings.Contains(reports[0], "second reply") || !strings.Contains(reports[1], "notification") {
		t.Errorf("%d replies, reports %q", n, reports)
	}
}

func TestChainMeetsTheFirstStageFirst(t *testing.T) {
	var order string
	mark := func(s string) Stage {
		return func(next Handler) Handler {
			return HandlerFunc(func(ctx context.Context, r *Request, reply func(Outcome)) { order += s; next.Handle(ctx, r, reply) })
		}
	}
	h := Chain(Work(func(context.Context, *Request) Outcome { return Cancelled }), mark("a"), mark("b"))
	Do(t.Context(), h, request(t, Legacy, `{"jsonrpc":"2.0","id":1,"method":"a"}`))
	if order != "ab" {
		t.Errorf("order %q", order)
	}
}

// What a call does waits for the log also where its answer has that written already.
func TestRecordIsWaitedFor(t *testing.T) {
	var written atomic.Bool
	begun, goOn := make(chan bool), make(chan bool)
	trail := NewTrail("c7f3a2", time.Now())
	if err := trail.Record(); err != nil || trail.Recorded() {
		t.Fatalf("with nothing to record: %v", err)
	}
	full := errors.New("the disk is full")
	trail.OnRecord(func() error {
		close(begun)
		<-goOn
		written.Store(true)
		return full
	})
	answer, effect := make(chan error, 1), make(chan error, 1)
	go func() { answer <- trail.Record() }()
	<-begun
	go func() {
		err := trail.Record()
		if !written.Load() {
			err = errors.New("nothing is written yet")
		}
		effect <- err
	}()
	select { // it would come now
	case err := <-effect:
		effect <- err
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	for name, c := range map[string]chan error{"answer": answer, "effect": effect} {
		if err := <-c; err != full {
			t.Errorf("the %s: %v", name, err)
		}
	}
	if trail.Recorded() {
		t.Error("what could not be written is recorded")
	}
}
