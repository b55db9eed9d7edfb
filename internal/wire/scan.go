package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Mode says how strictly a message is read. The envelope and the names are strict in both. The zero value is the strict one.
type Mode uint8

const (
	// Strict refuses bad UTF-8 and lone surrogates: for what is judged.
	Strict Mode = iota
	// Lenient passes them inside strings: for what a server sends.
	Lenient
)

// JSON-RPC's error codes.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Refusal is why a line is not a message that may go on.
type Refusal struct {
	// Code is the JSON-RPC error code that says so to the peer.
	Code int
	// ID is the id of the refused message as far as it could be found, else nil.
	ID []byte
	// Kind is what the line would have been; Invalid when that cannot be told.
	Kind Kind
	// Text is set when the line does not even look like a message.
	Text bool
	// Reason says what is wrong.
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// decoder is a jsontext.Decoder that reads from bytes, kept for reuse.
type decoder struct {
	jsontext.Decoder
	buf bytes.Buffer
}

var (
	decoders = sync.Pool{New: func() any { return new(decoder) }}

	strict  = jsontext.AllowInvalidUTF8(false)
	lenient = jsontext.AllowInvalidUTF8(true)
)

func newDecoder(b []byte, o jsontext.Options) *decoder {
	d := decoders.Get().(*decoder)
	d.buf = *bytes.NewBuffer(b)
	d.Reset(&d.buf, o)
	return d
}

func (d *decoder) release() {
	d.buf = bytes.Buffer{}
	d.Reset(&d.buf)
	decoders.Put(d)
}

// value reads one value or name, and says where it is.
func (d *decoder) value() ([]byte, Span, error) {
	v, err := d.ReadValue()
	end := int(d.InputOffset())
	return v, Span{end - len(v), end}, err
}

// Scan reads the envelope of one line. The message keeps line; it must not be written to afterwards. The error is a
// *Refusal.
func Scan(line []byte, mode Mode) (Message, error) {
	m := Message{raw: line}
	err := m.scan(strict)
	if err != nil && mode == Lenient && !errors.As(err, new(invalid)) {
		m = Message{raw: line, illFormed: true}
		err = m.scan(lenient)
	}
	if err != nil {
		return Message{}, m.refusal(err)
	}
	return m, nil
}

// invalid is an envelope that is JSON but not a message.
type invalid string

func (e invalid) Error() string { return string(e) }

func (m *Message) refusal(err error) *Refusal {
	r := &Refusal{Code: CodeInvalidRequest, Reason: err.Error()}
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		r.Reason = fmt.Sprintf("duplicate name at %s", clip(strconv.Quote(string(syntactic.JSONPointer))))
	case errors.As(err, &syntactic):
		r.Code = CodeParse
		r.Reason = fmt.Sprintf("not JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	case errors.As(err, new(invalid)):
	default:
		r.Code = CodeParse
	}
	first := bytes.TrimLeft(m.raw, " \t\r")
	r.Text = len(first) == 0 || first[0] != '{' && first[0] != '['
	if !r.Text {
		var f finder
		f.scan(m.raw)
		r.ID, r.Kind = f.id(), f.kind()
	}
	return r
}

func clip(s string) string {
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// seen marks the members of the envelope.
type seen struct{ jsonrpc, id, nullID bool }

func (m *Message) scan(opt jsontext.Options) error {
	if bytes.HasPrefix(m.raw, []byte("\xef\xbb\xbf")) {
		return invalid("byte order mark before the message")
	}
	d := newDecoder(m.raw, opt)
	defer d.release()
	switch d.PeekKind() {
	case '[':
		if err := d.SkipValue(); err != nil {
			return err
		}
		m.kind = Batch
		return d.end()
	case '{':
	default:
		if err := d.SkipValue(); err != nil {
			return err
		}
		return invalid("not an object")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	var s seen
	for d.PeekKind() != '}' {
		name, _, err := d.value()
		if err != nil {
			return err
		}
		known, err := knownName(name, envelopeNames)
		if err != nil {
			return err
		}
		if err := m.member(d, known, &s); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	return m.classify(s)
}

func (m *Message) member(d *decoder, known string, s *seen) error {
	switch known {
	case "params":
		return m.scanParams(d)
	case "result":
		return m.scanResult(d)
	}
	v, span, err := d.value()
	if err != nil {
		return err
	}
	switch known {
	case "jsonrpc":
		if string(v) != `"2.0"` {
			return invalid(`"jsonrpc" is not "2.0"`)
		}
		s.jsonrpc = true
	case "id":
		switch v[0] {
		case '"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			m.id, s.id = span, true
		case 'n':
			m.id, s.nullID = span, true
		default:
			return invalid(`"id" is neither a string nor a number`)
		}
		if len(v) > maxID {
			return invalid(fmt.Sprintf(`"id" is longer than %d bytes`, maxID))
		}
	case "method":
		if v[0] != '"' {
			return invalid(`"method" is not a string`)
		}
		m.method = span
	case "error":
		if v[0] != '{' {
			return invalid(`"error" is not an object`)
		}
		m.err = span
	}
	return nil
}

// maxID is the longest id that is kept, in bytes. Ids are held for every open request.
const maxID = 1024

// validID reports whether b is an id that a request can have.
func validID(b []byte) bool {
	k := jsontext.Value(b).Kind()
	return (k == '"' || k == '0') && len(b) <= maxID && jsontext.Value(b).IsValid()
}

func (m *Message) scanParams(d *decoder) (err error) {
	if d.PeekKind() == '{' {
		m.params, err = m.scanParts(d, paramNames)
		return err
	}
	v, span, err := d.value()
	if err != nil {
		return err
	}
	if v[0] != 'n' {
		return invalid(`"params" is not an object`)
	}
	m.params = span
	return nil
}

// scanResult reads a result, and where it says its type.
func (m *Message) scanResult(d *decoder) (err error) {
	if d.PeekKind() == '{' {
		m.result, err = m.scanParts(d, resultNames)
		return err
	}
	_, m.result, err = d.value()
	return err
}

// scanParts reads an object whose members this program reads by these names, and returns where it is. Where those are whose
// places are kept is noted.
func (m *Message) scanParts(d *decoder, names []string) (Span, error) {
	if _, err := d.ReadToken(); err != nil {
		return Span{}, err
	}
	start := int(d.InputOffset()) - 1
	for d.PeekKind() != '}' {
		name, _, err := d.value()
		if err != nil {
			return Span{}, err
		}
		known, err := knownName(name, names)
		if err != nil {
			return Span{}, err
		}
		if part := m.named(known); part != nil {
			_, *part, err = d.value()
		} else {
			err = d.SkipValue()
		}
		if err != nil {
			return Span{}, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return Span{}, err
	}
	return Span{start, int(d.InputOffset())}, nil
}

func (m *Message) classify(s seen) error {
	isResponse := m.result.End != 0 || m.err.End != 0
	switch {
	case !s.jsonrpc:
		return invalid(`"jsonrpc" is missing`)
	case m.method.End != 0 && isResponse:
		return invalid("both a request and a response")
	case m.method.End != 0 && s.nullID:
		return invalid(`the "id" of a request is null`)
	case m.method.End != 0 && s.id:
		m.kind = Request
	case m.method.End != 0:
		m.kind = Notification
	case !isResponse:
		return invalid(`neither "method" nor "result" nor "error"`)
	case m.result.End != 0 && m.err.End != 0:
		return invalid(`both "result" and "error"`)
	case !s.id && m.err.End == 0:
		return invalid(`a result without an "id"`)
	default:
		m.kind = Response
	}
	return nil
}

// end makes sure that nothing follows.
func (d *decoder) end() error {
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return invalid("trailing bytes after the message")
	}
	return nil
}

// The names that this program reads. A name that differs from one of them only in case is refused: a peer that matches
// names without case would read another message than the one that was judged.
var (
	envelopeNames = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramNames    = []string{"_meta", "name", "arguments", "uri", "ref", "argument", "context", "requestState", "inputResponses",
		"protocolVersion", "capabilities", "requestId", "level"}
	resultNames = []string{"resultType"}
)

func knownName(quoted []byte, names []string) (string, error) {
	raw := quoted[1 : len(quoted)-1]
	plain := bytes.IndexByte(raw, '\\') < 0
	for _, n := range names {
		if plain && string(raw) == n {
			return n, nil
		}
	}
	if plain && !mayFold(raw, names) {
		return "", nil
	}
	s, err := Unquote(quoted)
	if err != nil {
		return "", nil // bad text in a name that is none of ours
	}
	for _, n := range names {
		if s == n {
			return n, nil
		}
		if strings.EqualFold(s, n) {
			return "", invalid(fmt.Sprintf("name %q differs from %q only in case", s, n))
		}
	}
	return "", nil
}

// mayFold reports whether a name without escapes could be equal to one of these under case folding, which it is not exactly: it
// is in ASCII, or it has a letter beyond and is short.
func mayFold(raw []byte, names []string) bool {
	if len(raw) > 64 {
		return false
	}
	for _, n := range names {
		if len(n) == len(raw) && strings.EqualFold(n, string(raw)) {
			return true
		}
	}
	for _, c := range raw {
		if c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// IDKey returns the form of an id's bytes that is equal for equal ids; see Message.Key.
func IDKey(id []byte) string {
	if len(id) == 0 {
		return ""
	}
	if id[0] == '"' {
		if bytes.IndexByte(id, '\\') < 0 {
			return string(id[:len(id)-1])
		}
		s, _ := Unquote(id)
		return `"` + s
	}
	if bytes.ContainsAny(id, ".eE-") {
		if f, err := strconv.ParseFloat(string(id), 64); err == nil && f == float64(int64(f)) && f < 1<<53 && f > -1<<53 {
			return strconv.FormatInt(int64(f), 10)
		}
	}
	return string(id)
}

// maxElements is how many messages a batch may have. Each takes some hundred times the two bytes that one may be written with.
const maxElements = 10_000

// Elements returns the messages of a batch, each on its own bytes, or why it is none, or has too many. Each element is scanned
// like a line: what is refused is returned as its *Refusal at its place.
func (m *Message) Elements(mode Mode) ([]Message, []*Refusal, error) {
	var parts [][]byte
	d := newDecoder(m.raw, lenient)
	defer d.release()
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, err
	}
	for d.PeekKind() != ']' {
		_, span, err := d.value()
		if err != nil {
			return nil, nil, err
		}
		if len(parts) == maxElements {
			return nil, nil, invalid(fmt.Sprintf("a batch of more than %d messages", maxElements))
		}
		parts = append(parts, m.raw[span.Start:span.End:span.End])
	}
	if len(parts) == 0 {
		return nil, nil, invalid("empty batch")
	}
	msgs, refusals := make([]Message, len(parts)), make([]*Refusal, len(parts))
	for i, p := range parts {
		e, err := Scan(p, mode)
		switch {
		case err != nil:
			refusals[i] = err.(*Refusal)
		case e.kind == Batch:
			refusals[i] = &Refusal{Code: CodeInvalidRequest, Reason: "a batch inside a batch"}
		default:
			msgs[i] = e
		}
	}
	return msgs, refusals, nil
}

// Unquote returns the text of a JSON string as a scan has taken it. Ill-formed parts become U+FFFD. Of what is no such string comes
// what can be read of it, or an error where that is nothing.
func Unquote(quoted []byte) (string, error) {
	if text, ok := plain(quoted); ok {
		return string(text), nil
	}
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(quoted)), quoted)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && len(b) == 0 && len(quoted) > 2 {
		return "", fmt.Errorf("reading a string: %w", err)
	}
	return unsafe.String(unsafe.SliceData(b), len(b)), nil // nobody else has b
}

// plain returns what is between the quotes of a JSON string in which every byte stands for itself, as names mostly are.
func plain(quoted []byte) ([]byte, bool) {
	n := len(quoted) - 1
	if n < 1 || quoted[0] != '"' || quoted[n] != '"' {
		return nil, false
	}
	for _, c := range quoted[1:n] {
		if c < ' ' || c >= utf8.RuneSelf || c == '\\' || c == '"' {
			return nil, false
		}
	}
	return quoted[1:n], true
}

// Members yields the members of a JSON object, names unquoted, in order. It yields nothing when object is not an object.
// Object must be valid JSON.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for name, v := range members(object) {
			s, _ := Unquote(object[name.Start:name.End])
			if !yield(s, object[v.Start:v.End:v.End]) {
				return
			}
		}
	}
}

// Canonical returns a valid JSON value spelled in one way: members sorted, no blanks, fractions as RFC 8785 has them and integers with
// all their digits. It is for comparing, not for sending.
func Canonical(value []byte) []byte {
	v := jsontext.Value(bytes.Clone(value))
	if v.Canonicalize(jsontext.CanonicalizeRawInts(false)) != nil {
		return value
	}
	return v
}
