package transport

import (
	"strings"
	"testing"
	"time"
)

// A server that ends and leaves behind something that holds its output open is noticed: what was asked fails, and the exit
// code is its own.
func TestAServerThatLeavesItsOutputOpen(t *testing.T) {
	t.Parallel()
	p := NewProcess(func() (Command, error) {
		return Command{Args: []string{"sh", "-c", "sleep 600 & read line; exit 7"}}, nil
	}, ProcessOptions{Grace: 50 * time.Millisecond})
	out := untilAnswered(t, p, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	if exit := p.Close(); exit == nil || exit.Code != 7 || !strings.Contains(out, "exit status 7") {
		t.Errorf("exit %+v, answer %s", exit, out)
	}
}
