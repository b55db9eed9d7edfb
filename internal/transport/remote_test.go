package transport

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// told is a link to a server that answers each method as a test says: with a result, an error, or nothing, after a while.
type told struct {
	answer func(method string) (result, failure string, after time.Duration)
	take   func(m *wire.Message, refused *wire.Refusal, of string)
	ready  chan struct{}
	over   chan struct{}

	mu   sync.Mutex
	sent []string
}

func (l *told) Send(m *wire.Message) error {
	l.mu.Lock()
	l.sent = append(l.sent, m.Method())
	l.mu.Unlock()
	result, failure, after := l.answer(m.Method())
	if m.Kind() != wire.Request || result+failure == "" {
		return nil
	}
	time.AfterFunc(after, func() {
		<-l.ready
		if failure != "" {
			l.take(wire.NewErrorObject(m.ID(), []byte(failure)), nil, m.Key())
			return
		}
		l.take(wire.NewResult(m.ID(), []byte(result)), nil, m.Key())
	})
	return nil
}

func (l *told) Receive(take func(m *wire.Message, refused *wire.Refusal, of string)) {
	l.take = take
	close(l.ready)
	<-l.over
}

func (l *told) Sessionless() bool { return false }

func (l *told) Close() error {
	close(l.over)
	return nil
}

// Of a server on another machine a refusal says what it speaks. That it is slow does not, and that it breaks down may be otherwise the
// next time; nor does it speak the handshake revisions because it has a result for anything.
func TestWhatAServerElsewhereSpeaks(t *testing.T) {
	const (
		discover  = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`
		handshake = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
		empty     = `{"resultType":"complete"}`
	)
	for _, tt := range []struct {
		name              string
		discover, refusal string
		after             time.Duration
		initialize        string
		want              string
		sent              string
		remembered        bool
	}{
		{name: "slow", discover: discover, after: 19 * time.Second, initialize: handshake, want: "supportedVersions", sent: "server/discover"},
		{name: "slow to refuse a revision", refusal: `{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`, after: 19 * time.Second,
			initialize: handshake, want: "-32022", sent: "server/discover"},
		{name: "of the handshake era", refusal: `{"code":-32601,"message":"no"}`, initialize: handshake, want: "supportedVersions",
			sent: "server/discover initialize notifications/initialized ping", remembered: true},
		{name: "silent", initialize: handshake, want: "supportedVersions", sent: "server/discover initialize notifications/initialized ping", remembered: true},
		{name: "broken", refusal: `{"code":-32603,"message":"it broke","data":{"reason":"broken"}}`, initialize: handshake, want: "supportedVersions",
			sent: "server/discover initialize notifications/initialized ping"},
		{name: "failing", refusal: `{"code":-32603,"message":"it broke","data":{"reason":"server error"}}`, initialize: handshake, want: "supportedVersions",
			sent: "server/discover initialize notifications/initialized ping"},
		{name: "with a result for anything", refusal: `{"code":-32603,"message":"it broke"}`, initialize: empty, want: "it broke", sent: "server/discover initialize"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &told{ready: make(chan struct{}), over: make(chan struct{})}
				l.answer = func(method string) (result, failure string, after time.Duration) {
					switch method {
					case "server/discover":
						return tt.discover, tt.refusal, tt.after
					case "initialize":
						return tt.initialize, "", 0
					}
					return "{}", "", 0
				}
				m := &memory{}
				p := NewRemote(func(func()) (Link, error) { return l, nil }, ProcessOptions{Memory: m})
				s := exchange.NewSession(t.Context())
				defer s.End(errors.New("the test ends"))
				params := []byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)
				got := make(chan exchange.Outcome, 1)
				p.Handle(s.Context(), &exchange.Request{Msg: wire.NewRequest([]byte("1"), "server/discover", params), Era: exchange.Modern, Session: s},
					func(o exchange.Outcome) { got <- o })
				if o := <-got; o.Msg == nil || !strings.Contains(string(o.Msg.Bytes()), tt.want) {
					t.Errorf("got %v, want %s in it", o, tt.want)
				}
				time.Sleep(time.Minute)
				p.Close()
				l.mu.Lock()
				defer l.mu.Unlock()
				if want := strings.Fields(tt.sent); !slices.Equal(l.sent, want) {
					t.Errorf("it was sent %q, want %q", l.sent, want)
				}
				if _, _, known := m.Recall(); known != tt.remembered {
					t.Errorf("remembered is %v, want %v", known, tt.remembered)
				}
			})
		})
	}
}

// What a client did not wait for says nothing of its server, also when it hears of that later than another one of an answer.
func TestATrialThatNobodyWaitedFor(t *testing.T) {
	n := 0
	l := &told{ready: make(chan struct{}), over: make(chan struct{})}
	l.answer = func(string) (result, failure string, after time.Duration) {
		if n++; n == 1 {
			return "", "", 0
		}
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`, "", 0
	}
	p := NewRemote(func(func()) (Link, error) { return l, nil }, ProcessOptions{})
	defer p.Close()
	s := exchange.NewSession(t.Context())
	request := func(m *wire.Message, reply func(exchange.Outcome)) {
		p.Handle(s.Context(), &exchange.Request{Msg: m, Era: exchange.Modern, Session: s}, reply)
	}
	discover := func(id string, reply func(exchange.Outcome)) {
		request(wire.NewRequest([]byte(id), "server/discover", []byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)), reply)
	}
	heard, cancelled := make(chan struct{}), make(chan struct{})
	discover("1", func(exchange.Outcome) { <-heard })
	for sent := 0; sent == 0; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		sent = len(l.sent)
		l.mu.Unlock()
	}
	go func() {
		request(wire.NewNotification("notifications/cancelled", []byte(`{"requestId":1}`)), func(exchange.Outcome) {})
		close(cancelled)
	}()
	for p.trying() {
		time.Sleep(time.Millisecond)
	}
	got := make(chan exchange.Outcome, 1)
	for _, id := range []string{"2", "3"} {
		discover(id, func(o exchange.Outcome) { got <- o })
		if o := <-got; o.Msg == nil || o.Msg.Result() == nil {
			t.Fatalf("request %s got %v", id, o)
		}
		for p.routes[exchange.Modern].way.Load() != direct {
			time.Sleep(time.Millisecond)
		}
		if id == "2" {
			close(heard)
			<-cancelled
			if w := p.routes[exchange.Modern].way.Load(); w != direct {
				t.Fatalf("the way is %d, and was direct", w)
			}
		}
	}
}
