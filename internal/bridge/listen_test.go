package bridge

import (
	"context"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Whoever waits for what a server says that it will tell is told, too, when nothing is left that it could tell: another one that follows the
// same resource may have been refused it meanwhile.
func TestASubscriptionThatAnotherOneLost(t *testing.T) {
	u := NewUp(exchange.HandlerFunc(func(context.Context, *exchange.Request, func(exchange.Outcome)) {}))
	st := u.session(exchange.NewSession(t.Context()))
	told := 0
	u.listen(st, func([]byte, *wire.Message) { told++ })
	if told != 1 {
		t.Errorf("it was told %d times", told)
	}
}
