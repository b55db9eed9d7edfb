package verify

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// A list whose pages are long ends for us, too.
func TestALongListIsGivenUp(t *testing.T) {
	page := append(append([]byte(`{"tools":[`), wire.Quote(strings.Repeat("x", 6<<20))...), ']')
	n := 0
	p := &peer{ctx: t.Context(), era: exchange.Modern, limit: time.Minute}
	p.server.Handler = exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		n++
		reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), page, fmt.Appendf(nil, `,"nextCursor":"%d"}`, n))})
	})
	if l := p.listAll("tools/list", "tools"); l.endless != "it has more than 16 MiB on 3 pages" || n != 3 {
		t.Errorf("%d pages were fetched, and it is said: %q", n, l.endless)
	}
}
