package bridge

import (
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

const (
	// modernRevision is what is spoken to a stateless server, and what a stateless client may speak here.
	modernRevision = "2026-07-28"
	// legacyRevision is what a handshake server is offered, and a handshake client that asks for an unknown one.
	legacyRevision = "2025-11-25"
)

// handshakes are the revisions that begin with initialize.
var handshakes = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, legacyRevision: true}

// Codes that one of the eras has and the other has not.
const (
	codeResourceNotFound    = -32002 // handshake
	codeURLElicitation      = -32042 // handshake
	codeHeaderMismatch      = -32020 // stateless
	codeMissingCapability   = -32021 // stateless
	codeUnsupportedRevision = -32022 // stateless
)

// code returns the code of an error object, 0 when it has none.
func code(object []byte) int {
	v, _ := wire.Get(object, "code")
	n, _ := strconv.Atoi(string(v))
	return n
}

func withCode(m *wire.Message, code int) *wire.Message {
	return wire.NewErrorObject(m.ID(), wire.SetMember(m.Error(), strconv.AppendInt(nil, int64(code), 10), "code"))
}

// errorUp is an error of a stateless server in the words of the handshake era.
func errorUp(m *wire.Message) *wire.Message {
	switch code(m.Error()) {
	case codeHeaderMismatch, codeMissingCapability, codeUnsupportedRevision:
		return withCode(m, wire.CodeInvalidParams)
	}
	return m
}

// errorDown is an error of a handshake server in the words of the stateless era.
func errorDown(m *wire.Message) *wire.Message {
	switch code(m.Error()) {
	case codeResourceNotFound:
		return withCode(m, wire.CodeInvalidParams)
	case codeURLElicitation:
		return withCode(m, wire.CodeInternal)
	}
	return m
}

const reserved = "io.modelcontextprotocol/"

// withoutReserved takes out of an object's _meta what the stateless era says there, and _meta itself when nothing is left.
func withoutReserved(object []byte) []byte {
	meta, ok := wire.Get(object, "_meta")
	if !ok {
		return object
	}
	switch left := unreserved(meta); {
	case left == nil:
		return wire.DeleteMember(object, "_meta")
	case len(left) < len(meta):
		return wire.SetMember(object, left, "_meta")
	}
	return object
}

// unreserved returns what else a _meta says, nil for nothing.
func unreserved(meta []byte) []byte {
	left := 0
	meta = wire.DeleteMembers(meta, func(name string, _ []byte) bool {
		if strings.HasPrefix(name, reserved) {
			return true
		}
		left++
		return false
	})
	if left == 0 {
		return nil
	}
	return meta
}

// answers reports whether a client with these capabilities answers this question: its method, and the mode and the
// tools that its params ask for.
func answers(caps []byte, method string, params []byte) bool {
	need := exchange.CapabilityFor(method)
	if need == "" || !exchange.Answers(caps, method) {
		return false
	}
	has := func(name string) bool {
		_, ok := wire.Get(caps, need, name)
		return ok
	}
	switch method {
	case "elicitation/create":
		if wire.GetString(params, "mode") == "url" {
			return has("url")
		}
		return has("form") || !has("url") // an empty declaration is of forms
	case "sampling/createMessage":
		_, tools := wire.Get(params, "tools")
		return !tools || has("tools")
	}
	return true
}

// maxDepth is how deep what is asked and answered may be nested: it stands deeper in the words of the other era, and a message
// has its limit.
const maxDepth = 9_990

// tooDeep reports whether a JSON value is nested deeper than maxDepth.
func tooDeep(value []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// question makes a question of one era into one of the other: what is said of it besides stays on its hop.
func question(q exchange.Question) exchange.Question {
	if q.Params != nil {
		q.Params = withoutReserved(q.Params)
		q.Params = wire.DeleteMember(q.Params, "task")
		if _, ok := wire.Get(q.Params, "_meta", "progressToken"); ok {
			q.Params = wire.DeleteMember(q.Params, "_meta", "progressToken")
		}
	}
	q.Msg = nil
	return q
}

// named is a server's name and version from what it says of itself.
func named(info []byte) string {
	return strings.TrimSpace(wire.GetString(info, "name") + " " + wire.GetString(info, "version"))
}
