package pin

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
)

// Kind is what a definition is of.
type Kind string

const (
	// Server is a server as a whole: how it presents itself, and its instructions. There is one, without a name.
	Server   Kind = "server"
	Tool     Kind = "tool"
	Prompt   Kind = "prompt"
	Template Kind = "template" // of resources
)

// Definition is what a server says of one thing.
type Definition struct {
	Kind Kind
	// Name is that of the tool or prompt, or a template's URI template.
	Name string
	// Text is canonical JSON.
	Text []byte
}

// New makes a definition of a valid JSON value.
func New(kind Kind, name string, value []byte) Definition {
	return Definition{kind, name, wire.Canonical(value)}
}

// Key tells definitions of a server apart.
func (d Definition) Key() string { return string(d.Kind) + " " + d.Name }

// String names what the definition is of, for people.
func (d Definition) String() string {
	if d.Kind == Server {
		return "the server itself"
	}
	return "the " + string(d.Kind) + " " + quoted(d.Name)
}

// Hash is a print of the definition in hexadecimal. Each part goes in with its length before it, so that no two definitions
// have the same bytes.
func (d Definition) Hash() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("rootbound pin 1"), []byte(d.Kind), []byte(d.Name), d.Text} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// lists are where results have definitions: the member with the list, and the one that names each of them.
var lists = map[string]struct {
	kind       Kind
	list, name string
}{
	"tools/list":               {Tool, "tools", "name"},
	"prompts/list":             {Prompt, "prompts", "name"},
	"resources/templates/list": {Template, "resourceTemplates", "uriTemplate"},
}

// List returns where a result of method has its definitions: the member with the list, and the one that names each. Ok is
// false for a method whose results have no list of them.
func List(method string) (list, name string, kind Kind, ok bool) {
	l, ok := lists[method]
	return l.list, l.name, l.kind, ok
}

// Definitions returns those in a result of method. Of two with one name the last counts.
func Definitions(method string, result []byte) []Definition {
	if method == "initialize" || method == "server/discover" {
		return []Definition{serverOf(result)}
	}
	l, ok := lists[method]
	if !ok {
		return nil
	}
	items, _ := wire.Get(result, l.list)
	var defs []Definition
	for item := range wire.Items(items) {
		if name := wire.GetString(item, l.name); name != "" {
			defs = append(defs, New(l.kind, name, item))
		}
	}
	return defs
}

// serverOf takes what a server says of itself out of the result of a handshake or a discovery.
func serverOf(result []byte) Definition {
	text := []byte("{}")
	info, ok := wire.Get(result, "serverInfo")
	if !ok {
		info, ok = wire.Get(result, "_meta", "io.modelcontextprotocol/serverInfo")
	}
	if ok {
		text = wire.SetMember(text, info, "serverInfo")
	}
	if instructions, ok := wire.Get(result, "instructions"); ok {
		text = wire.SetMember(text, instructions, "instructions")
	}
	return New(Server, "", text)
}

// Short is the beginning of a hash, for people.
func Short(hash string) string { return hash[:min(12, len(hash))] }

func quoted(s string) string { return string(wire.Quote(visible(s))) }

// blanks are what a line of ours has between words.
var blanks = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")
