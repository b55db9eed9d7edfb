package exchange

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/wire"
)

// Do hands r to h and waits for the outcome: for tests and the demo, where there is nothing to keep in order.
// When ctx ends first, the outcome is Cancelled.
func Do(ctx context.Context, h Handler, r *Request) Outcome {
	done := make(chan Outcome, 1)
	h.Handle(ctx, r, func(o Outcome) { done <- o })
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		return Cancelled
	}
}

// Work makes a handler of blocking work: each request gets a goroutine of its own. Notifications run in order on the
// caller's goroutine; f must not wait for them.
func Work(f func(ctx context.Context, r *Request) Outcome) Handler {
	return HandlerFunc(func(ctx context.Context, r *Request, reply func(Outcome)) {
		if r.Msg.Kind() != wire.Request {
			f(ctx, r)
			return
		}
		go func() { reply(f(ctx, r)) }()
		runtime.Gosched() // it begins here and now: to be woken for it, another thread takes longer than most of the work does
	})
}

// InOrder runs f, which passes on an answer of the server and may wait for a disk before it does, where that answer was read.
// It returns when f does, so that what the server says next does not overtake the answer: the word that a list has changed is
// not to come before the list as it was. A disk that does not answer holds nothing else up, though: after a second it returns
// all the same. So it does for what is told to a peer that does not read.
func InOrder(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// Checked holds a handler to its contract: a second reply to a request, or a reply to a notification, is reported and
// goes nowhere. Report is called with what happened.
func Checked(h Handler, report func(error)) Handler {
	return HandlerFunc(func(ctx context.Context, r *Request, reply func(Outcome)) {
		var replied atomic.Bool
		h.Handle(ctx, r, func(o Outcome) {
			switch {
			case r.Msg.Kind() != wire.Request:
				report(fmt.Errorf("bug: a reply to the notification %q", r.Msg.Method()))
			case replied.Swap(true):
				report(fmt.Errorf("bug: a second reply to %q", r.Msg.Method()))
			default:
				reply(o)
			}
		})
	})
}
