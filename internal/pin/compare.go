package pin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/unseen"
)

// Change is one difference between two definitions.
type Change struct {
	// Path is where, in the words of the definition: "inputSchema.properties.path.default".
	Path string
	// Before and After are what was and what is there, as JSON; empty when nothing.
	Before, After string
	// Danger says why it is one of meaning; empty for one of words.
	Danger string
}

// Dangerous reports whether a change is one of meaning.
func Dangerous(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Danger != "" })
}

// Reasons are the dangers of changes, each once.
func Reasons(changes []Change) []string {
	var list []string
	for _, c := range changes {
		if c.Danger != "" && !slices.Contains(list, c.Danger) {
			list = append(list, c.Danger)
		}
	}
	return list
}

// Suspicious says what is wrong with a definition that is seen for the first time, or nothing: characters that nobody sees
// have no use in one.
func Suspicious(d Definition) []Change {
	v := decoded(d.Text)
	var list []Change
	if unseen.Any(d.Name) {
		list = append(list, Change{"name", "", string(d.Text), dangerHidden})
	}
	each("", v, func(path, s string) {
		if unseen.Any(s) && len(list) < maxChanges {
			list = append(list, Change{path, "", encoded(s), dangerHidden})
		}
	})
	return list
}

// maxChanges is how many changes of one definition are told apart.
const maxChanges = 200

// The dangers.
const (
	dangerHidden    = "it has characters that a person does not see"
	dangerParameter = "it takes a new parameter"
	dangerRequired  = "it requires another parameter"
	dangerWider     = "it takes values that it did not take"
	dangerDefault   = "another value is used when none is given"
	dangerSchema    = "what it takes is described in another way"
	dangerWrites    = "it may change things now"
	dangerClaims    = "it claims now to do no harm"
	dangerMeta      = "what steers a client is another"
	dangerIcon      = "its icon is at an address of another kind"
	dangerUnknown   = "something changed of which the meaning is not known"
)

// Dangers are all that a Change.Danger can say, for who has other words for them.
func Dangers() []string {
	return []string{dangerHidden, dangerParameter, dangerRequired, dangerWider, dangerDefault, dangerSchema, dangerWrites, dangerClaims, dangerMeta, dangerIcon,
		dangerUnknown, dangerWords, dangerMuch, dangerScript}
}

// Compare returns how new differs from old, in a fixed order. Both are of the same thing.
func Compare(old, new Definition) []Change {
	if bytes.Equal(old.Text, new.Text) {
		return nil
	}
	c := &comparison{described: map[string]bool{}}
	before, _ := decoded(old.Text).(map[string]any)
	after, _ := decoded(new.Text).(map[string]any)
	c.script = scriptOf(texts(before))
	described(before, func(s string) { c.described[s] = true })
	c.members("", before, after, func(path, name string, a, b any) {
		switch name {
		case "title", "description", "instructions":
			c.text(path, a, b)
		case "inputSchema":
			c.schema(path, a, b, true)
		case "outputSchema":
			c.schema(path, a, b, false)
		case "annotations":
			c.annotations(path, a, b)
		case "_meta":
			c.meta(path, a, b)
		case "icons":
			c.icons(path, a, b)
		case "arguments":
			c.arguments(path, a, b)
		case "serverInfo":
			c.info(path, a, b)
		case "execution", "mimeType", "size":
			c.add(path, a, b, "")
		default:
			c.add(path, a, b, dangerUnknown)
		}
	})
	return c.changes
}

type comparison struct {
	changes []Change
	script  scripts // of the old texts
	// described are those of the old texts that describe something.
	described map[string]bool
}

// absent stands for a member that is not there: null is a value.
type absent struct{}

func (c *comparison) add(path string, a, b any, danger string) {
	switch {
	case hidesMore(a, b) || b != (absent{}) && unseen.Any(path):
		danger = dangerHidden
	case danger == "":
		danger = c.newWords(b)
	}
	change := Change{path, encoded(a), encoded(b), danger}
	switch {
	case change.Before == change.After:
	case len(c.changes) < maxChanges:
		c.changes = append(c.changes, change)
	case danger != "": // the last place is for one that counts
		c.changes[maxChanges-1] = change
	}
}

// newWords says why a text in a value that describes something, and is not in the old definition, is more than a matter of words;
// nothing where it is none.
func (c *comparison) newWords(v any) (danger string) {
	described(v, func(s string) {
		if danger == "" && !c.described[s] {
			danger = steering("", s, c.script)
		}
	})
	return danger
}

// described calls f with every text in a value that describes something: by its name, or since it is several words.
func described(v any, f func(s string)) {
	text := func(name string, v any) {
		if s, is := v.(string); !is {
			described(v, f)
		} else if name == "title" || name == "description" || name == "$comment" || len(strings.Fields(s)) >= severalWords {
			f(s)
		}
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			text("", e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text(name, v[name])
		}
	}
}

// severalWords are more than a name, a path or an address has.
const severalWords = 4

// hidesMore reports whether b has characters that nobody sees in a text that a has not.
func hidesMore(a, b any) bool {
	known := map[string]bool{}
	each("", a, func(_, s string) { known[s] = true })
	more := false
	each("", b, func(_, s string) { more = more || !known[s] && unseen.Any(s) })
	return more
}

// members calls f for each member that differs, by name.
func (c *comparison) members(path string, a, b map[string]any, f func(path, name string, a, b any)) {
	names := map[string]bool{}
	for _, m := range []map[string]any{a, b} {
		for name := range m {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, y := member(a, name), member(b, name)
		if encoded(x) == encoded(y) {
			continue
		}
		at := name
		if path != "" {
			at = path + "." + name
		}
		f(at, name, x, y)
	}
}

func member(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return absent{}
}

// objects calls f for each member that differs, when both are objects or not there, and else adds the change as a whole.
func (c *comparison) objects(path string, a, b any, danger string, f func(path, name string, a, b any)) {
	x, okA := object(a)
	y, okB := object(b)
	if !okA || !okB {
		c.add(path, a, b, danger)
		return
	}
	c.members(path, x, y, f)
}

func object(v any) (map[string]any, bool) {
	if v == (absent{}) {
		return nil, true
	}
	m, ok := v.(map[string]any)
	return m, ok
}

// text judges a change of words.
func (c *comparison) text(path string, a, b any) {
	before, _ := a.(string)
	after, ok := b.(string)
	if !ok && b != (absent{}) {
		c.add(path, a, b, dangerUnknown)
		return
	}
	c.add(path, a, b, steering(before, after, c.script))
}

// info is for how a server presents itself. Nothing acts on it.
func (c *comparison) info(path string, a, b any) {
	c.objects(path, a, b, dangerUnknown, func(path, name string, a, b any) {
		switch name {
		case "name", "title", "description":
			c.text(path, a, b)
		case "icons":
			c.icons(path, a, b)
		default:
			c.add(path, a, b, "")
		}
	})
}

// annotations: what is not said counts as the worst, by the specification. So a tool that was harmless is not any more when that is
// taken back, whether its contrary is said or nothing is.
func (c *comparison) annotations(path string, a, b any) {
	c.objects(path, a, b, dangerUnknown, func(path, name string, a, b any) {
		danger := ""
		switch {
		case name == "title":
			c.text(path, a, b)
			return
		case (name == "readOnlyHint" || name == "idempotentHint") && b == true,
			(name == "destructiveHint" || name == "openWorldHint") && b == false:
			danger = dangerClaims
		case name == "readOnlyHint" && a == true, (name == "destructiveHint" || name == "openWorldHint") && a == false:
			danger = dangerWrites
		}
		c.add(path, a, b, danger)
	})
}

// meta: what known clients and the protocol act on counts.
func (c *comparison) meta(path string, a, b any) {
	c.objects(path, a, b, dangerUnknown, func(path, name string, a, b any) {
		danger := ""
		for _, prefix := range []string{"anthropic/", "openai/", "ui/", "ui.", "io.modelcontextprotocol/", "io.modelcontextprotocol."} {
			if strings.HasPrefix(strings.ToLower(name), prefix) || strings.EqualFold(name, "ui") {
				danger = dangerMeta
			}
		}
		c.add(path, a, b, danger)
	})
}

// icons: another picture is one of words, unless it is fetched in another way.
func (c *comparison) icons(path string, a, b any) {
	schemes := func(v any) []string {
		var list []string
		items, _ := v.([]any)
		for _, item := range items {
			icon, _ := item.(map[string]any)
			src, _ := icon["src"].(string)
			scheme := "?"
			if u, err := url.Parse(src); err == nil {
				scheme = u.Scheme
			}
			if strings.HasPrefix(src, "data:") {
				scheme = "data"
			}
			list = append(list, scheme)
		}
		return list
	}
	danger := ""
	old := schemes(a)
	for _, s := range schemes(b) {
		if s != "https" && s != "data" && !slices.Contains(old, s) {
			danger = dangerIcon
		}
	}
	c.add(path, a, b, danger)
}

// arguments are those of a prompt: a list, each with its name.
func (c *comparison) arguments(path string, a, b any) {
	named := func(v any) (map[string]any, bool) {
		m := map[string]any{}
		if v == (absent{}) {
			return m, true
		}
		items, ok := v.([]any)
		for i, item := range items {
			o, isObject := item.(map[string]any)
			name, isString := o["name"].(string)
			if !isString {
				name = strconv.Itoa(i)
			}
			_, twice := m[name]
			ok = ok && isObject && !twice // of two with one name one would be out of sight
			m[name] = item
		}
		return m, ok
	}
	x, okA := named(a)
	y, okB := named(b)
	if !okA || !okB {
		c.add(path, a, b, dangerUnknown)
		return
	}
	count := len(c.changes)
	c.members(path, x, y, func(path, _ string, a, b any) {
		switch {
		case a == (absent{}):
			c.add(path, a, b, dangerParameter)
		case b == (absent{}):
			c.add(path, a, b, "")
		default:
			c.objects(path, a, b, dangerUnknown, func(path, name string, a, b any) {
				switch {
				case name == "title" || name == "description":
					c.text(path, a, b)
				case name == "required" && b == true:
					c.add(path, a, b, dangerRequired)
				case name == "required":
					c.add(path, a, b, "")
				default:
					c.add(path, a, b, dangerUnknown)
				}
			})
		}
	})
	if len(c.changes) == count { // the order
		c.add(path, a, b, "")
	}
}

func decoded(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(text)
	}
	return v
}

func encoded(v any) string {
	if v == (absent{}) {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// each calls f with every text in a value, names of members among them, and where it is.
func each(path string, v any, f func(path, s string)) {
	switch v := v.(type) {
	case string:
		f(path, v)
	case []any:
		for i, e := range v {
			each(path+"["+strconv.Itoa(i)+"]", e, f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := name
			if path != "" {
				at = path + "." + name
			}
			f(at, name)
			each(at, v[name], f)
		}
	}
}

func texts(v any) string {
	var b strings.Builder
	each("", v, func(_, s string) { b.WriteString(s + "\n") })
	return b.String()
}
