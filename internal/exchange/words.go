package exchange

import (
	"strconv"
	"sync/atomic"

	"github.com/rootbound/rootbound/internal/wire"
)

// Keys of `_meta` in the modern era.
const (
	MetaVersion        = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	MetaClient         = "io.modelcontextprotocol/clientInfo"
	MetaServer         = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel       = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
)

// Listen is the long-running request on which travels what belongs to no other request. A modern client sends it; the
// legacy client edge opens one for its session before the first message.
const Listen = "subscriptions/listen"

var owned atomic.Int64

// NewID returns an id for a message of our own, "rb-N", unlike every one before. A peer may use the same by chance or by
// intent: an edge that keeps ids of both asks again while the one it got is open.
func NewID() []byte {
	return append(strconv.AppendInt([]byte(`"rb-`), owned.Add(1), 10), '"')
}

// Own returns a request of ours in the words of r and with its _meta, with an id of ours and without a caller. With a
// method that begins with "notifications/" it is a notification.
func Own(r *Request, method string, params []byte) *Request {
	if r.Era == Modern {
		if meta := r.Msg.Meta(); meta != nil {
			params = wire.SetMember(params, wire.DeleteMember(meta, "progressToken"), "_meta")
		}
	}
	c := *r
	c.Caller, c.Held, c.Trail = nil, nil, nil
	if isNotification(method) {
		c.Msg = wire.NewNotification(method, params)
	} else {
		c.Msg = wire.NewRequest(NewID(), method, params)
	}
	return &c
}

func isNotification(method string) bool {
	const prefix = "notifications/"
	return len(method) > len(prefix) && method[:len(prefix)] == prefix
}

// Capability returns the client's declaration of a capability for this request, nil when it did not declare it: what the
// handshake said, or in the modern era what this request says.
func Capability(r *Request, name string) []byte {
	var caps []byte
	switch {
	case r.Era == Modern:
		caps, _ = wire.Get(r.Msg.Meta(), MetaCapabilities)
	case r.Session != nil:
		caps = r.Session.Client().Capabilities
	}
	return declared(caps, name)
}

// declared returns what capabilities say of one of them, nil when they do not declare it.
func declared(caps []byte, name string) []byte {
	v, ok := wire.Get(caps, name)
	if !ok || string(v) == "null" || string(v) == "false" {
		return nil
	}
	return v
}

// Answers reports whether a client with these capabilities answers a server's question of method that needs one.
func Answers(caps []byte, method string) bool { return declared(caps, CapabilityFor(method)) != nil }

// CapabilityFor names the client capability that a server's question needs, "" when it needs none.
func CapabilityFor(method string) string {
	switch method {
	case "roots/list":
		return "roots"
	case "sampling/createMessage":
		return "sampling"
	case "elicitation/create":
		return "elicitation"
	}
	return ""
}

// DeclareRoots returns r with the roots capability that the server is to see: in a handshake's initialize the given
// declaration, in a modern request exactly {}. A nil declaration takes it out. Other messages stay as they are.
func DeclareRoots(r *Request, declaration []byte) *Request {
	path := []string{"capabilities", "roots"}
	switch {
	case r.Era == Modern && r.Msg.Kind() == wire.Request && r.Msg.Meta() != nil:
		path = []string{"_meta", MetaCapabilities, "roots"}
		if declaration != nil {
			declaration = []byte("{}")
		}
	case r.Era == Legacy && r.Msg.Method() == "initialize":
	default:
		return r
	}
	params := r.Msg.Params()
	old, has := wire.Get(params, path...)
	_, complete := wire.Get(params, path[:len(path)-1]...)
	switch {
	case !complete && r.Era == Modern: // what is missing is for the server to refuse
		return r
	case declaration == nil && !has, declaration != nil && string(old) == string(declaration):
		return r
	case declaration == nil:
		return r.With(r.Msg.WithEdited(wire.DeleteMember(params, path...)))
	}
	return r.With(r.Msg.WithEdited(wire.SetMember(params, declaration, path...)))
}

// Result is the outcome of r with a result that is at hand as a JSON object.
func Result(r *Request, result []byte) Outcome {
	if r.Era == Modern {
		if _, ok := wire.Get(result, "resultType"); !ok {
			result = wire.SetMember(result, []byte(`"complete"`), "resultType")
		}
	}
	return Outcome{Msg: wire.NewResult(r.Msg.ID(), result)}
}

// Fail is the outcome of r with a JSON-RPC error. Data may be nil.
func Fail(r *Request, code int, message string, data []byte) Outcome {
	return Outcome{Msg: wire.NewError(r.Msg.ID(), code, message, data)}
}

// ToolError is the outcome of a tools/call that tells the model what went wrong.
func ToolError(r *Request, text string) Outcome {
	b := append([]byte(`{"content":[{"type":"text","text":`), wire.Quote(text)...)
	return Result(r, append(b, `}],"isError":true}`...))
}

// Refused is the outcome of r that says no in the way its method has for it: a tool's error that the model reads for
// tools/call, an error of JSON-RPC for everything else.
func Refused(r *Request, text string, data []byte) Outcome {
	if r.Msg.Method() == "tools/call" {
		return ToolError(r, text)
	}
	return Fail(r, wire.CodeInvalidParams, text, data)
}

// Cancelled is the outcome of a request that its client does not wait for any more.
var Cancelled = Outcome{}

// MaxQuestions is how many questions a server may ask at once: each is looked at by every stage, and put to a person.
const MaxQuestions = 64

// Interim returns the questions of an outcome by which a stateless server gives its request back, and whether it is one.
// An outcome without questions, only with a state to come back with, is one too.
func Interim(r *Request, o Outcome) ([]Question, bool) {
	if r.Era != Modern || o.Msg == nil || o.Msg.ResultType() != "input_required" {
		return nil, false
	}
	var qs []Question
	requests, _ := wire.Get(o.Msg.Result(), "inputRequests")
	for key, v := range wire.Members(requests) {
		q := Question{Key: key, Method: wire.GetString(v, "method")}
		q.Params, _ = wire.Get(v, "params")
		qs = append(qs, q)
	}
	return qs, true
}

// InputRequired makes the result by which a request is given back: the questions, and the state to come back with ("" for
// none). A question without params gets empty ones: they are optional, and there are clients that read them all the same.
func InputRequired(qs []Question, state string) []byte {
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range qs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(wire.AppendQuote(b, q.Key), `:{"method":`...)
		b = wire.AppendQuote(b, q.Method)
		params := q.Params
		if params == nil {
			params = []byte("{}")
		}
		b = append(append(append(b, `,"params":`...), params...), '}')
	}
	b = append(b, '}')
	if state != "" {
		b = wire.AppendQuote(append(b, `,"requestState":`...), state)
	}
	return append(b, '}')
}

// ErrorAnswer is an answer that says why there is none.
func ErrorAnswer(code int, message string) Answer {
	return Answer{Error: wire.ErrorObject(code, message, nil)}
}

// ErrorAnswers answers n questions alike.
func ErrorAnswers(n, code int, message string) []Answer {
	answers := make([]Answer, n)
	for i := range answers {
		answers[i] = ErrorAnswer(code, message)
	}
	return answers
}
