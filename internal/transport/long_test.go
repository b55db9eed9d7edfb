package transport

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/mcptest"
)

// Long lines: over the official clients' 10 MiB they pass and are reported; over the limit they are skipped, and their
// call fails with the id that comes last.
func TestLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 11<<20)
	answer := `{"result":{"protocolVersion":"2025-11-25","x":"` + long + `"},"jsonrpc":"2.0","id":1}`
	var told reports
	mcptest.Play(t, `
C> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
S< {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
S> `+answer+`
C< `+answer+`
C> {"jsonrpc":"2.0","id":2,"method":"ping"}
S< {"jsonrpc":"2.0","id":2,"method":"ping"}
S> {"result":{"x":"`+long+long+`","id":9},"jsonrpc":"2.0","id":2}
C< {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"rootbound: the server's answer was refused: a message longer than 16777216 bytes"}}
C> {"jsonrpc":"2.0","id":3,"method":"ping"}
S< {"jsonrpc":"2.0","id":3,"method":"ping"}
S> {"jsonrpc":"2.0","id":3,"result":{}}
C< {"jsonrpc":"2.0","id":3,"result":{}}
`, nil, passthrough(ProcessOptions{Limit: 16 << 20, Report: told.add}))
	told.must(t, fmt.Sprintf("the server sent a message of %d bytes; many clients end the connection at 10485760", len(answer)))
}

// Text that a server prints between its messages is told, and what else of it is refused.
func TestWhatIsRefusedOfAServerIsTold(t *testing.T) {
	t.Parallel()
	var told reports
	transcript(t, "odd-servers", "refusals").Play(t, nil, passthrough(ProcessOptions{Report: told.add}))
	told.must(t, "the server wrote a line to stdout that is no message; it was dropped (such lines belong on stderr)")
	told.must(t, `the server answered "99", which is not open; the answer was dropped`)
}

// reports are what was reported.
type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *reports) must(t *testing.T, line string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.lines, line) {
		t.Errorf("%q was not reported, but %q", line, r.lines)
	}
}

// A server that asks and asks, and a client that does not answer: the questions that are kept are bounded, and one that is
// answered makes room for another.
func TestQuestionsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	var play strings.Builder
	play.WriteString(`
C> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
S< {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
S> {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}
C< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}
`)
	for i := range 1024 {
		fmt.Fprintf(&play, "S> {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"elicitation/create\"}\nC< {\"jsonrpc\":\"2.0\",\"id\":%[1]d,\"method\":\"elicitation/create\"}\n", i)
	}
	play.WriteString(`
S> {"jsonrpc":"2.0","id":"more","method":"elicitation/create"}
S< {"jsonrpc":"2.0","id":"more","error":{"code":-32603,"message":"rootbound: too many of your requests are not answered yet","data":{"reason":"too many questions"}}}
C> {"jsonrpc":"2.0","id":7,"result":{"action":"decline"}}
S< {"jsonrpc":"2.0","id":7,"result":{"action":"decline"}}
S> {"jsonrpc":"2.0","id":"more","method":"elicitation/create"}
C< {"jsonrpc":"2.0","id":"more","method":"elicitation/create"}
C> {"jsonrpc":"2.0","id":"more","result":{"action":"decline"}}
S< {"jsonrpc":"2.0","id":"more","result":{"action":"decline"}}
`)
	for i := range 1024 {
		if i != 7 {
			fmt.Fprintf(&play, "C> {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\nS< {\"jsonrpc\":\"2.0\",\"id\":%[1]d,\"result\":{}}\n", i)
		}
	}
	mcptest.Play(t, play.String(), nil, passthrough(ProcessOptions{}))
}
