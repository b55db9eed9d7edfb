package fsserver

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/wire"
)

// report tells the client, if it has asked for that, how far a call has come: a count, each second in which it has
// grown. The caller calls the function it returns when the call is over.
func (c *call) report(count *atomic.Int64, what string) (done func()) {
	token, _ := wire.Get(c.request.Msg.Meta(), "progressToken")
	if kind := typeOf(token); c.request.Caller == nil || kind != "string" && kind != "number" {
		return func() {}
	}
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for last := int64(0); ; {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			if n := count.Load(); n > last {
				last = n
				c.request.Caller.Notify(wire.NewNotification("notifications/progress",
					fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"message":%s}`, token, n, wire.Quote(fmt.Sprintf("%d %s", n, what)))))
			}
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}

// countingReader counts what is read.
type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}
