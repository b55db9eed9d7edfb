package wire

import (
	"bytes"
	"slices"
	"strconv"
	"sync"
)

// Kind is what a message is by its envelope.
type Kind uint8

const (
	// Invalid is the zero value; Scan never returns it without an error.
	Invalid Kind = iota
	// Request has a method and an id.
	Request
	// Notification has a method and no id.
	Notification
	// Response has an id and a result or an error.
	Response
	// Batch is an array of messages (revision 2025-03-26 only). Only Elements says something about it.
	Batch
)

func (k Kind) String() string {
	return [...]string{"invalid message", "request", "notification", "response", "batch"}[k]
}

// Span is a part of a message's bytes, from Start up to and without End. The zero value is absent.
type Span struct{ Start, End int }

// Message is one JSON-RPC message: its bytes as they came, and where its parts are. It is never changed; the methods
// that edit return a new one. The slices it gives out alias its bytes and must not be written to.
type Message struct {
	raw                             []byte
	kind                            Kind
	illFormed                       bool
	id, method, params, result, err Span
	meta, name, arguments           Span    // of params
	state, responses                Span    // of params: requestState and inputResponses
	resultType                      Span    // of result
	unread                          bool    // nobody has looked for that
	lent                            *[]byte // what raw lies in, of a message of NewLongResult
}

// Bytes returns the whole message without the line end.
func (m *Message) Bytes() []byte { return m.raw }

// Kind returns what the message is.
func (m *Message) Kind() Kind { return m.kind }

// IllFormed reports whether a string holds bad UTF-8 or a lone surrogate (only after a Lenient scan).
func (m *Message) IllFormed() bool { return m.illFormed }

func (m *Message) part(s Span) []byte {
	if s.End == 0 {
		return nil
	}
	return m.raw[s.Start:s.End:s.End]
}

// ID returns the id's bytes as they came, nil when there is none.
func (m *Message) ID() []byte { return m.part(m.id) }

// Key returns the id in a form that is equal for equal ids: 1, 1.0 and 1e0 are one id, and so are "a" and "\u0061".
// Integers keep all their digits.
func (m *Message) Key() string { return IDKey(m.ID()) }

// Method returns the method's name, "" when there is none.
func (m *Message) Method() string {
	if m.method.End == 0 {
		return ""
	}
	raw := m.raw[m.method.Start:m.method.End]
	if s, ok := interned[string(raw)]; ok {
		return s
	}
	s, _ := Unquote(raw)
	return s
}

// Params returns the params' bytes, nil when there are none.
func (m *Message) Params() []byte { return m.part(m.params) }

// Meta returns the bytes of params._meta, nil when there is none.
func (m *Message) Meta() []byte { return m.part(m.meta) }

// Name returns the text of params.name, "" when it is not there or no string: what a call calls.
func (m *Message) Name() string { return text(m.part(m.name)) }

func text(v []byte) string {
	if len(v) == 0 || v[0] != '"' {
		return ""
	}
	s, _ := Unquote(v)
	return s
}

// Arguments returns the bytes of params.arguments, nil when there are none.
func (m *Message) Arguments() []byte { return m.part(m.arguments) }

// RequestState returns the text of params.requestState, "" when it is not there or no string.
func (m *Message) RequestState() string { return text(m.part(m.state)) }

// InputResponses returns the bytes of params.inputResponses, nil when there are none.
func (m *Message) InputResponses() []byte { return m.part(m.responses) }

// ResultType returns the text of result.resultType, "" when it is not there or no string.
func (m *Message) ResultType() string {
	if m.unread {
		return GetString(m.Result(), "resultType")
	}
	return text(m.part(m.resultType))
}

// Result returns the result's bytes, nil when there is none.
func (m *Message) Result() []byte { return m.part(m.result) }

// Error returns the error object's bytes, nil when there is none.
func (m *Message) Error() []byte { return m.part(m.err) }

// WithID returns m with another id, or m itself when the bytes are equal. The id must be valid JSON.
func (m *Message) WithID(id []byte) *Message {
	if bytes.Equal(m.ID(), id) || m.id.End == 0 {
		return m
	}
	return m.spliced(m.id, id)
}

// spliced returns m with other bytes in a part. What is behind it moves, what it is in becomes longer or shorter, and nothing is
// read again.
func (m *Message) spliced(old Span, with []byte) *Message {
	c, by := *m, len(with)-(old.End-old.Start)
	c.raw = make([]byte, 0, len(m.raw)+by+1)
	c.raw = append(append(append(c.raw, m.raw[:old.Start]...), with...), m.raw[old.End:]...)
	c.raw = append(c.raw, '\n')[:len(c.raw)] // the writer then has the line end at hand
	c.lent = nil
	for _, s := range []*Span{&c.id, &c.method, &c.params, &c.result, &c.err, &c.meta, &c.name, &c.arguments, &c.state, &c.responses, &c.resultType} {
		if s.End >= old.End {
			s.End += by
		}
		if s.Start >= old.End {
			s.Start += by
		}
	}
	return &c
}

// WithEdited is WithParams for params that were made from those of m by SetMember and DeleteMember, with values of scanned messages
// and of ours: they are not scanned again.
func (m *Message) WithEdited(params []byte) *Message {
	if m.params.End == 0 {
		return m.WithParams(params)
	}
	c := m.spliced(m.params, params)
	for _, name := range paramParts {
		*c.named(name) = Span{}
	}
	for n, v := range members(params) {
		for _, name := range paramParts {
			if nameIs(params[n.Start:n.End], name) {
				*c.named(name) = Span{v.Start + c.params.Start, v.End + c.params.Start}
				break
			}
		}
	}
	return c
}

// paramParts are the members of params whose places are kept.
var paramParts = []string{"_meta", "name", "arguments", "requestState", "inputResponses"}

// named is the place of one of them, or of the type of a result; nil for another name.
func (m *Message) named(name string) *Span {
	switch name {
	case "_meta":
		return &m.meta
	case "name":
		return &m.name
	case "arguments":
		return &m.arguments
	case "requestState":
		return &m.state
	case "inputResponses":
		return &m.responses
	case "resultType":
		return &m.resultType
	}
	return nil
}

// WithEditedResult is WithResult in the same way.
func (m *Message) WithEditedResult(result []byte) *Message {
	if m.result.End == 0 {
		return m.WithResult(result)
	}
	c := m.spliced(m.result, result)
	c.resultType, c.unread = Span{}, false
	if s, ok := find(result, "resultType"); ok {
		c.resultType = Span{s.Start + c.result.Start, s.End + c.result.Start}
	}
	return c
}

// WithParams returns m with other params. A message without params gets them.
func (m *Message) WithParams(params []byte) *Message { return m.withPart(m.params, "params", params) }

// WithResult returns the response m with another result.
func (m *Message) WithResult(result []byte) *Message { return m.withPart(m.result, "result", result) }

func (m *Message) withPart(s Span, name string, value []byte) *Message {
	if s.End != 0 {
		return m.splice(s, value)
	}
	return made(SetMember(m.raw, value, name))
}

func (m *Message) splice(s Span, value []byte) *Message {
	out := make([]byte, 0, len(m.raw)-(s.End-s.Start)+len(value))
	out = append(out, m.raw[:s.Start]...)
	out = append(out, value...)
	out = append(out, m.raw[s.End:]...)
	return made(out)
}

// made scans what this program wrote itself. That it cannot be scanned is a bug in this program: the caller's bytes were
// not JSON.
func made(b []byte) *Message {
	m, err := Scan(b, Lenient)
	if err != nil {
		panic("bug: wire made a message it cannot read: " + err.Error())
	}
	return &m
}

// NewRequest makes a request. Params may be nil.
func NewRequest(id []byte, method string, params []byte) *Message {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, `,"method":`...)
	return made(appendParams(AppendQuote(b, method), params))
}

// NewNotification makes a notification. Params may be nil.
func NewNotification(method string, params []byte) *Message {
	return made(appendParams(AppendQuote([]byte(`{"jsonrpc":"2.0","method":`), method), params))
}

func appendParams(b, params []byte) []byte {
	if params != nil {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// longMade is the length from which on what this program wrote is not scanned again, which would take longer than to write it.
const longMade = 64 << 10

// NewResult makes a response with a result, which may be given in parts: they are copied once. The id and the parts together
// must be valid JSON on one line.
func NewResult(id []byte, result ...[]byte) *Message {
	b := newResponse(id, "result", result...)
	if len(b) < longMade || id == nil {
		return made(b)
	}
	return resultOf(b, id)
}

const beginResponse, beginResult = `{"jsonrpc":"2.0","id":`, `,"result":`

// resultOf makes the message of a response with a result that was just made. The id is not nil.
func resultOf(b, id []byte) *Message {
	m := &Message{raw: b, kind: Response, unread: true}
	m.id.Start = len(beginResponse)
	m.id.End = m.id.Start + len(id)
	m.result = Span{m.id.End + len(beginResult), len(b) - 1}
	return m
}

// longBuffers are for long messages that are made here. What is made of fresh memory waits for the kernel to clear it, page by
// page, which takes longer than to write a text into it.
var longBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxLent is the largest of them that is kept, in bytes.
const maxLent = 16 << 20

// NewLongResult is NewResult for a result of about so many bytes, which fill appends. A long one lies in memory that is used
// again when a Writer has written it: so it is for one Writer, and nobody looks at it once that has it.
func NewLongResult(id []byte, size int, fill func(b []byte) []byte) *Message {
	if size < longMade || id == nil {
		return NewResult(id, fill(make([]byte, 0, size)))
	}
	lent := longBuffers.Get().(*[]byte)
	b := slices.Grow((*lent)[:0], size+len(beginResponse)+len(id)+len(beginResult)+2)
	b = append(append(append(b, beginResponse...), id...), beginResult...)
	b = append(fill(b), '}', '\n') // the writer then has the line end at hand
	*lent = b
	m := resultOf(b[:len(b)-1], id)
	m.lent = lent
	return m
}

// giveBack lets the memory of a long result be used again.
func (m *Message) giveBack() {
	if lent := m.lent; lent != nil {
		m.lent = nil
		if cap(*lent) <= maxLent {
			longBuffers.Put(lent)
		}
	}
}

// NewError makes a response with an error. Data may be nil.
func NewError(id []byte, code int, message string, data []byte) *Message {
	return NewErrorObject(id, ErrorObject(code, message, data))
}

// NewErrorObject makes a response with an error object that is at hand as JSON.
func NewErrorObject(id, object []byte) *Message {
	return made(newResponse(id, "error", object))
}

// ErrorObject makes the error member of a response. Data may be nil.
func ErrorObject(code int, message string, data []byte) []byte {
	b := strconv.AppendInt([]byte(`{"code":`), int64(code), 10)
	b = AppendQuote(append(b, `,"message":`...), message)
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return append(b, '}')
}

func newResponse(id []byte, name string, value ...[]byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	const begin, middle, end = beginResponse, `,"`, `":`
	size := len(begin) + len(id) + len(middle) + len(name) + len(end) + 1
	for _, part := range value {
		size += len(part)
	}
	b := append(append(make([]byte, 0, size+1), begin...), id...)
	b = append(append(append(b, middle...), name...), end...)
	for _, part := range value {
		b = append(b, part...)
	}
	return append(b, '}', '\n')[:size] // the writer then has the line end at hand
}

// interned saves the allocation of a method's name.
var interned = func() map[string]string {
	m := map[string]string{}
	for _, s := range []string{
		"initialize", "ping", "server/discover", "subscriptions/listen", "logging/setLevel", "completion/complete",
		"tools/list", "tools/call", "prompts/list", "prompts/get", "roots/list", "sampling/createMessage", "elicitation/create",
		"resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/message",
		"notifications/roots/list_changed", "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated",
	} {
		m[strconv.Quote(s)] = s
	}
	return m
}()
