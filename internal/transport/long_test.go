package transport

import (
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
