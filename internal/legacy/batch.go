package legacy

import (
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// batchRevision is the one revision that has batches.
const batchRevision = "2025-03-26"

// batch collects the answers to an array of requests, which are sent as one array.
type batch struct {
	on      exchange.Stream
	mu      sync.Mutex
	left    int
	answers [][]byte
}

// deliver sends an answer, or puts it to the others of its batch; nil is the answer of a request that was cancelled.
func (k *call) deliver(m *wire.Message) {
	if k.batch == nil {
		k.on.End(m)
	} else {
		k.batch.deliver(m)
	}
}

func (b *batch) deliver(m *wire.Message) {
	b.mu.Lock()
	if m != nil {
		b.answers = append(b.answers, m.Bytes())
	}
	b.left--
	last := b.left == 0
	b.mu.Unlock()
	switch {
	case !last:
		return
	case len(b.answers) == 0:
		b.on.End(nil)
		return
	}
	line := []byte{'['}
	for i, a := range b.answers {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, a...)
	}
	if m, err := wire.Scan(append(line, ']'), wire.Lenient); err == nil {
		b.on.End(&m)
	}
}

func (c *Client) receiveBatch(m *wire.Message, on exchange.Stream) {
	if c.session.Client().Revision != batchRevision {
		on.Refuse(wire.NewError(nil, wire.CodeInvalidRequest, "rootbound: batches exist only in revision "+batchRevision, nil))
		return
	}
	msgs, refused, err := m.Elements(wire.Strict)
	if err != nil {
		on.Refuse(wire.NewError(nil, wire.CodeInvalidRequest, "rootbound: this batch was refused: "+err.Error(), nil))
		return
	}
	b := &batch{on: on, left: 1} // one for this loop, so that the array is not sent before its end
	for i := range msgs {
		if refused[i] == nil && msgs[i].Kind() == wire.Request || refused[i] != nil && Refusal(refused[i]) != nil {
			b.left++
		}
	}
	for i := range msgs {
		switch e := &msgs[i]; {
		case refused[i] != nil:
			if answer := Refusal(refused[i]); answer != nil {
				b.deliver(answer)
			}
		case e.Kind() == wire.Request && e.Method() == "initialize":
			b.deliver(exchange.Fail(&exchange.Request{Msg: e}, wire.CodeInvalidRequest, "rootbound: initialize must not be in a batch", nil).Msg)
		case e.Kind() == wire.Request:
			c.request(e, on, b)
		case e.Kind() == wire.Notification:
			c.notification(e)
		default:
			c.response(e)
		}
	}
	b.deliver(nil)
}
