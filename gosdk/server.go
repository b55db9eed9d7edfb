//lint:file-ignore SA1019 Roots are deprecated and still spoken, and are what this package is about.

package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

const (
	// firstStateless is the first revision without a handshake, in which a question travels with the result.
	firstStateless = "2026-07-28"
	// askKey is the name of our question among those of a result, with its number behind it.
	askKey = "rootbound.roots."
	// lateAnswers is how long an answer may still come that nobody waits for any longer.
	lateAnswers = 30 * time.Second
	// mostRounds is how often a handler may ask for one request.
	mostRounds = 10
)

// errAsk ends a handler for which the client has to be asked. What serves the request then asks, and runs it again.
var errAsk = errors.New("the client is asked for its roots before this can be done: return this error from the handler")

// NewServer is mcp.NewServer for a server whose handlers of tools, prompts and resources call Roots. One Session of package
// roots is kept for each connection, made with o; over stateless HTTP one is made for each request.
//
// It also does for all handlers what the SDK leaves undone: a handler may ask its client several times in a row
// in the revisions with a handshake too, and a client is not asked what it did not declare since 2026-07-28.
func NewServer(impl *mcp.Implementation, options *mcp.ServerOptions, o roots.SessionOptions) *mcp.Server {
	h := &holder{options: o, sessions: map[*mcp.ServerSession]*roots.Session{}}
	s := mcp.NewServer(impl, options)
	s.AddReceivingMiddleware(h.receive) // around the SDK's own, which runs a handler twice at most
	return s
}

// Roots returns what holds for the request that a handler serves, in a context of that request. Where the client has to
// be asked first, it returns an error that the handler returns, as it is or wrapped: then the client is asked, in the way
// of its revision, and the handler is run again from its start. So it is called before anything is done. Within one
// run it says the same each time: a request ends with the roots with which it began.
//
// Of several requests one asks, and in the others Roots waits for the answer, for roots.AnswerLimit at most, or until ctx ends.
// The client is asked for tools, prompts and resources only; elsewhere Roots says what is known. Several goroutines of a
// handler may call it at once.
func Roots(ctx context.Context) (roots.State, error) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return roots.State{}, errors.New("finding the roots of a request: this is no context of a server that gosdk.NewServer made")
	}
	return c.roots(ctx)
}

// Denied returns the error for the handler to return when err, from package rootfs, says that path is outside of the
// roots. The client may have opened that directory without telling, so where its list is older than the request it is
// asked once more, as Roots does, and the handler is run again if other roots hold then. So it is for handlers that
// have not changed anything yet. Any other err, nil too, is returned as it is.
func Denied(ctx context.Context, path string, err error) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || !errors.Is(err, rootfs.OutsideRoots) {
		return err
	}
	return c.deniedPath(ctx, path, err)
}

// holder keeps what holds for the sessions of a server.
type holder struct {
	options roots.SessionOptions

	mu       sync.Mutex
	sessions map[*mcp.ServerSession]*roots.Session
	warned   string // the last warning of a session that was for one request
}

// single returns the roots of one request.
func (h *holder) single() *roots.Session {
	o := h.options
	o.Warn = func(text string) {
		h.mu.Lock()
		again := h.warned == text
		h.warned = text
		h.mu.Unlock()
		if !again && h.options.Warn != nil {
			h.options.Warn(text)
		}
	}
	return roots.NewSession(o)
}

// session returns the roots of a connection.
func (h *holder) session(ss *mcp.ServerSession) *roots.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[ss]
	if s == nil {
		s = roots.NewSession(h.options)
		h.sessions[ss] = s
		go func() {
			_ = ss.Wait() // how it ended is its owner's affair
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.sessions, ss)
		}()
	}
	return s
}

// receive is a middleware of the server.
func (h *holder) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		if method == "notifications/roots/list_changed" {
			h.session(ss).ListChanged()
			return next(ctx, method, req)
		}
		c := &call{next: next, method: method, peer: ss, came: time.Now()}
		// That is also what the SDK goes by: the first request of a connection says it for all.
		p := ss.InitializeParams()
		c.stateless = p == nil || p.ProtocolVersion >= firstStateless
		extra := req.GetExtra()
		c.alone = c.stateless && extra != nil && extra.Header != nil
		if c.alone {
			c.session = h.single()
		} else {
			c.session = h.session(ss)
		}
		r, ok := openRequest(req)
		if !ok {
			return next(context.WithValue(ctx, callKey{}, c), method, req)
		}
		return c.serve(ctx, r)
	}
}

// call is a request that is served. Its handler may use several goroutines.
type call struct {
	next      mcp.MethodHandler
	method    string
	peer      *mcp.ServerSession
	session   *roots.Session
	came      time.Time
	stateless bool                    // questions travel with the result
	alone     bool                    // nothing is kept from one try to the next
	asks      bool                    // this method may ask
	caps      *mcp.ClientCapabilities // of the client, for this request

	mu     sync.Mutex
	asked  bool // Roots had its question
	denied bool // Denied had its
	// Of one run of the handler:
	known   bool // state is what Roots has said
	state   roots.State
	pending int  // the question for which it has to stop
	again   bool // it has to stop since other roots hold
}

type callKey struct{}

// serve runs the handler until it does not have to ask any more.
func (c *call) serve(ctx context.Context, r request) (mcp.Result, error) {
	c.asks = true
	if c.caps = r.caps; c.caps == nil {
		c.caps = &mcp.ClientCapabilities{}
	}
	if err := c.take(ctx, r); err != nil {
		return nil, err
	}
	for round := 0; ; {
		res, err := c.next(context.WithValue(ctx, callKey{}, c), c.method, r.Request)
		stopped := errors.Is(failure(res, err), errAsk)
		question, again := c.over()
		switch {
		case stopped && again:
			continue
		case stopped && question != 0 && c.stateless:
			return inputRequired(c.method, mcp.InputRequestMap{askKey + strconv.Itoa(question): &mcp.ListRootsParams{}}, *r.state)
		case stopped && question != 0:
			if err := c.ask(ctx, question); err != nil {
				return nil, err
			}
			continue
		case question != 0: // the handler went on without
			c.session.Answer(question, nil, context.Canceled)
		}
		if err != nil {
			return res, err
		}
		asks, state := questions(res)
		switch {
		case asks == nil:
			return res, nil
		case c.stateless:
			return c.handOn(res, asks)
		case round == mostRounds:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("%s: the handler has asked %d times", c.method, round)}
		}
		round++
		answers, err := c.fulfil(ctx, asks)
		if err != nil {
			return nil, err
		}
		r, _ = openRequest(r.Request)
		*r.responses, *r.state = answers, state
	}
}

// take takes the answers to our own questions out of a request that is tried again.
func (c *call) take(ctx context.Context, r request) error {
	again := *r.state != "" || len(*r.responses) > 0
	others := maps.Clone(*r.responses)
	for key, response := range *r.responses {
		number, ours := strings.CutPrefix(key, askKey)
		if !ours {
			continue
		}
		delete(others, key)
		list, err := rootsOf(response)
		question, _ := strconv.Atoi(number)
		c.session.Answer(question, list, err)
		// Another process may have asked, or this one before it was started again. Then it is the answer to our first question.
		_, ask, failed := c.session.Need(ctx, c.declared())
		if failed != nil {
			return failed
		}
		if ask != 0 {
			c.session.Answer(ask, list, err)
		}
		c.asked = true
	}
	if len(others) == 0 {
		others = nil
	}
	*r.responses = others
	// What a handler asked for itself would be lost if we asked in between; a call ends with the roots with which it began.
	c.asked = c.asked || again && c.session.State().Why >= roots.Narrowed
	return nil
}

// declared is what the client of the call declares.
func (c *call) declared() roots.Client {
	if c.caps == nil || c.caps.RootsV2 == nil {
		return roots.Client{}
	}
	return roots.Client{Roots: true, ListChanged: !c.stateless && c.caps.RootsV2.ListChanged}
}

func (c *call) roots(ctx context.Context) (roots.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known:
		return c.state, nil
	case c.pending != 0 || c.again:
		return roots.State{}, errAsk
	case c.asked || !c.asks:
		c.state = c.session.State()
	default:
		state, ask, err := c.session.Need(ctx, c.declared())
		if err != nil {
			return roots.State{}, fmt.Errorf("waiting for the client's roots: %w", err)
		}
		c.asked = true
		if ask != 0 {
			c.pending = ask
			return roots.State{}, errAsk
		}
		c.state = state
	}
	c.known = true
	return c.state, nil
}

func (c *call) deniedPath(ctx context.Context, path string, denied error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending != 0 || c.again {
		return errAsk
	}
	if c.denied || !c.asks || !c.known {
		return denied
	}
	c.denied = true
	state, ask, err := c.session.Denied(ctx, c.came, path)
	switch {
	case err != nil:
		return denied
	case ask != 0:
		c.pending = ask
		return errAsk
	case !state.Set.Equal(c.state.Set):
		c.again = true
		return errAsk
	}
	return denied
}

// over ends a run of the handler. It returns what the run has stopped for: a question, or that other roots hold by now.
func (c *call) over() (question int, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	question, again = c.pending, c.again
	c.pending, c.again, c.known = 0, false, false
	return question, again
}

// ask asks a client with a handshake, and waits for what it answers, no longer than is worth while.
func (c *call) ask(ctx context.Context, question int) error {
	// The answer may still come when nobody waits any longer.
	asking, stop := context.WithTimeout(context.WithoutCancel(ctx), lateAnswers)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer stop()
		list, err := listOf(c.peer.ListRoots(asking, nil))
		if asking.Err() == nil { // else that was told
			c.session.Answer(question, list, err)
		}
	}()
	late := time.NewTimer(roots.AnswerLimit)
	defer late.Stop()
	select {
	case <-answered:
	case <-late.C:
		c.session.Answer(question, nil, context.DeadlineExceeded)
	case <-ctx.Done():
		stop()
		c.session.Answer(question, nil, context.Canceled)
		return context.Cause(ctx)
	}
	return nil
}

// handOn hands a question of the handler on to a client without a handshake.
func (c *call) handOn(res mcp.Result, asks mcp.InputRequestMap) (mcp.Result, error) {
	if need := missing(c.caps, asks); need != nil {
		data, err := json.Marshal(map[string]any{"requiredCapabilities": need})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client does not declare what it would be asked", Data: data}
	}
	// What answers the next try knows nothing of this one, and would ask for the roots then.
	if c.alone && c.asked && c.declared().Roots && c.session.State().Why >= roots.Unanswered {
		asks = maps.Clone(asks) // it is the handler's
		asks[askKey+"0"] = &mcp.ListRootsParams{}
		return withQuestions(res, asks), nil
	}
	return res, nil
}

// fulfil asks a client with a handshake what a handler wants to know.
func (c *call) fulfil(ctx context.Context, asks mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	answers := make(mcp.InputResponseMap, len(asks))
	for _, key := range slices.Sorted(maps.Keys(asks)) {
		var answer mcp.InputResponse
		var err error
		switch p := asks[key].(type) {
		case *mcp.ListRootsParams:
			answer, err = c.peer.ListRoots(ctx, p)
		case *mcp.ElicitParams:
			answer, err = c.peer.Elicit(ctx, p)
		case *mcp.CreateMessageWithToolsParams:
			answer, err = c.peer.CreateMessageWithTools(ctx, p)
		case *mcp.CreateMessageParams:
			answer, err = c.peer.CreateMessage(ctx, p)
		default:
			err = fmt.Errorf("no client can be asked a %T", p)
		}
		if err != nil {
			return nil, asWireError(fmt.Errorf("asking the client %q: %w", key, err))
		}
		answers[key] = answer
	}
	return answers, nil
}
