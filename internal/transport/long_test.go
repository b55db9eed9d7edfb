package transport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/mcptest"
)

// Long lines: over the official clients' 10 MiB they pass and are reported; over the limit they are skipped, and their
// call fails with the id that comes last.
func TestLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 11<<20)
	mcptest.Play(t, `
C> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
S< {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
S> {"result":{"protocolVersion":"2025-11-25","x":"`+long+`"},"jsonrpc":"2.0","id":1}
C< {"result":{"protocolVersion":"2025-11-25","x":"`+long+`"},"jsonrpc":"2.0","id":1}
C> {"jsonrpc":"2.0","id":2,"method":"ping"}
S< {"jsonrpc":"2.0","id":2,"method":"ping"}
S> {"result":{"x":"`+long+long+`","id":9},"jsonrpc":"2.0","id":2}
C< {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"rootbound: the server's answer was refused: a message longer than 16777216 bytes"}}
C> {"jsonrpc":"2.0","id":3,"method":"ping"}
S< {"jsonrpc":"2.0","id":3,"method":"ping"}
S> {"jsonrpc":"2.0","id":3,"result":{}}
C< {"jsonrpc":"2.0","id":3,"result":{}}
`, nil, passthrough(ProcessOptions{Limit: 16 << 20}))
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
