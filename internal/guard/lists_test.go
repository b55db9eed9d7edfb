package guard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/wire"
)

// tooLong is the error behind its id.
const tooLong = `"error":{"code":-32603,"message":"rootbound: the server lists more than 5000 things, or more than 16 MiB of them, in its answers to tools/list; what it listed before that can be used","data":{"reason":"list too long"}}}`

// A list whose pages have no end is an error when there is no room for more, and a list that is whole makes room for the next one.
func TestListsWithoutAnEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		tools, size int  // of a page, and of the description of each
		ends        bool // each page is all of a list
		good        int  // how many pages are taken; 0 is all, and -1 none
	}{
		"many":                    {1000, 10, false, 5},
		"long":                    {2, 4 << 20, false, 1},
		"one after the other":     {3000, 10, true, 0},
		"long, one after another": {2, 3 << 20, true, 0},
		"too long at once":        {2, 9 << 20, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
				n++
				var b strings.Builder
				for i := range tt.tools {
					fmt.Fprintf(&b, `,{"name":"t%d_%d","description":"%s","inputSchema":{"type":"object"}}`, n, i, strings.Repeat("x", tt.size))
				}
				next := ""
				if !tt.ends {
					next = fmt.Sprintf(`,"nextCursor":"c%d"`, n)
				}
				reply(exchange.Result(r, []byte(`{"tools":[`+b.String()[1:]+`]`+next+`}`)))
			})
			warned := 0
			h := guard.New(guard.Options{Server: "s", Warn: func(string) { warned++ }}).Wrap(server)
			session := exchange.NewSession(t.Context())
			for page := range max(tt.tools/125, 3) {
				params := []byte(`{}`)
				if page > 0 && !tt.ends {
					params = wire.SetMember(params, wire.Quote(fmt.Sprint("c", page)), "cursor")
				}
				got := make(chan *wire.Message, 1)
				h.Handle(t.Context(), &exchange.Request{Msg: wire.NewRequest(exchange.NewID(), "tools/list", params), Session: session}, func(o exchange.Outcome) { got <- o.Msg })
				m := <-got
				if bad := m.Error() != nil; bad != (tt.good != 0 && page >= tt.good) || bad && !strings.HasSuffix(string(m.Bytes()), tooLong) {
					t.Fatalf("page %d: %.300s", page, m.Bytes())
				}
			}
			if want := min(1, max(tt.good, -tt.good)); warned != want {
				t.Errorf("it was told %d times", warned)
			}
		})
	}
}
