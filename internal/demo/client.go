package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// client drives a command as an MCP client of one era, and shows what goes over the wire.
type client struct {
	ctx     context.Context
	p       *printer
	era     exchange.Era
	process *transport.Process
	session *exchange.Session
	quiet   *os.File

	mu    sync.Mutex
	roots []string
	n     int
}

const declared = `{"roots":{"listChanged":true}}`

func newClient(ctx context.Context, p *printer, era exchange.Era, command []string, dirs ...string) (*client, error) {
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	c := &client{ctx: ctx, p: p, era: era, roots: dirs, session: exchange.NewSession(ctx), quiet: quiet}
	c.process = transport.NewProcess(func() (transport.Command, error) { return transport.Command{Args: command}, nil },
		transport.ProcessOptions{Stderr: quiet})
	if era == exchange.Modern {
		if _, err := c.request("server/discover", "{}"); err != nil {
			c.close()
			return nil, err
		}
		return c, nil
	}
	c.process.Handle(ctx, &exchange.Request{Msg: wire.NewRequest(exchange.NewID(), exchange.Listen, nil), Caller: c, Session: c.session}, func(exchange.Outcome) {})
	if _, err := c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+declared+`,"clientInfo":{"name":"rootbound-demo","version":"1"}}`); err != nil {
		c.close()
		return nil, err
	}
	c.notify("notifications/initialized")
	return c, nil
}

func (c *client) close() {
	c.session.End(nil)
	c.process.Close()
	c.quiet.Close()
}

func (c *client) notify(method string) {
	m := wire.NewNotification(method, nil)
	c.p.message("→", m)
	c.process.Handle(c.ctx, &exchange.Request{Msg: m, Session: c.session}, func(exchange.Outcome) {})
}

// request sends a request and returns its result, after as many rounds as a stateless server wants.
func (c *client) request(method, params string) ([]byte, error) {
	p := []byte(params)
	if c.era == exchange.Modern {
		p = wire.SetMember(p, []byte(`{"`+exchange.MetaVersion+`":"2026-07-28","`+exchange.MetaCapabilities+`":{"roots":{}}}`), "_meta")
	}
	for range 10 {
		c.n++
		m := wire.NewRequest(fmt.Appendf(nil, "%d", c.n), method, p)
		c.p.message("→", m)
		r := &exchange.Request{Msg: m, Era: c.era, Caller: c, Session: c.session}
		o := exchange.Do(c.ctx, c.process, r)
		if o.Msg == nil {
			return nil, context.Cause(c.ctx)
		}
		c.p.message("←", o.Msg)
		if o.Msg.Error() != nil {
			return nil, fmt.Errorf("%s was answered with an error: %s", method, o.Msg.Error())
		}
		questions, interim := exchange.Interim(r, o)
		if !interim {
			return o.Msg.Result(), nil
		}
		for _, q := range questions {
			if q.Method != "roots/list" {
				return nil, fmt.Errorf("%s wants an answer to %s", method, q.Method)
			}
			p = wire.SetMember(p, c.list(), "inputResponses", q.Key)
		}
		if state, ok := wire.Get(o.Msg.Result(), "requestState"); ok {
			p = wire.SetMember(p, state, "requestState")
		}
	}
	return nil, fmt.Errorf("%s was given back ten times", method)
}

func (c *client) call(tool, arguments string) ([]byte, error) {
	return c.request("tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
}

func (c *client) read(path string) ([]byte, error) {
	return c.call("read_text_file", `{"path":`+string(wire.Quote(path))+`}`)
}

// setRoots switches the workspace. A stateless client has no word for it: it answers differently when it is asked.
func (c *client) setRoots(dirs ...string) error {
	c.mu.Lock()
	c.roots = dirs
	c.mu.Unlock()
	if c.era == exchange.Modern {
		return nil
	}
	c.notify("notifications/roots/list_changed")
	return nil
}

func (c *client) list() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := []byte(`{"roots":[`)
	for i, d := range c.roots {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(wire.AppendQuote(append(b, `{"uri":`...), roots.FileURI(d)), `,"name":`...)
		b = append(wire.AppendQuote(b, filepath.Base(d)), '}')
	}
	return append(b, `]}`...)
}

// Notify implements exchange.Caller.
func (c *client) Notify(m *wire.Message) { c.p.message("←", m) }

// CanAsk implements exchange.Caller.
func (c *client) CanAsk(method string) bool { return method == "roots/list" || method == "ping" }

// Ask implements exchange.Caller: the handshake server's questions.
func (c *client) Ask(_ context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	answers := make([]exchange.Answer, len(qs))
	for i, q := range qs {
		c.p.message("←", q.Msg)
		result := []byte("{}")
		if q.Method == "roots/list" {
			result = c.list()
		}
		answers[i] = exchange.Answer{Msg: wire.NewResult(q.Msg.ID(), result)}
		c.p.message("→", answers[i].Msg)
	}
	answer(answers)
}
