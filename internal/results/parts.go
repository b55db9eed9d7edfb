package results

import (
	"iter"

	"github.com/rootbound/rootbound/internal/wire"
)

// lists are the members of results that hold parts, by method.
var lists = map[string]string{
	"tools/call": "content", "prompts/get": "messages", "resources/read": "contents", "resources/list": "resources",
}

// partsOf yields the parts in a list of a result: blocks of content, those of the messages of a prompt too, the contents of
// a resource, or resources.
func partsOf(method string, items []byte) iter.Seq[[]byte] {
	if method != "prompts/get" {
		return wire.Items(items)
	}
	return func(yield func([]byte) bool) {
		for message := range wire.Items(items) {
			content, _ := wire.Get(message, "content")
			for block := range each(content) {
				if !yield(block) {
					return
				}
			}
		}
	}
}

// each yields the elements of an array, or a value that is none.
func each(v []byte) iter.Seq[[]byte] {
	if len(v) > 0 && v[0] == '[' {
		return wire.Items(v)
	}
	return func(yield func([]byte) bool) {
		if len(v) > 0 {
			yield(v)
		}
	}
}

// uris yields the URIs of a part: its own, and that of the resource in it.
func uris(part []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, v := range wire.Members(part) {
			if name == "uri" && !yield(textOf(v)) {
				return
			}
			if name == "resource" {
				if uri := wire.GetString(v, "uri"); uri != "" && !yield(uri) {
					return
				}
			}
		}
	}
}

// parts holds the parts to their number, where they lead and what they are, and takes out what is to be.
func (r *run) parts() {
	n, changed := 0, false
	for p := range partsOf(r.Method, r.items) {
		if n++; r.does(Limits) && n > r.Bounds.Parts {
			r.found(Limits, "it has more than %d parts", r.Bounds.Parts)
			return
		}
		changed = r.part(p) != "" || changed
	}
	if !changed {
		return
	}
	list := lists[r.Method]
	r.Value, r.edited = wire.SetMember(r.Value, r.rewrite(list), list), true
}

// rewrite returns a list of parts with what is to be taken out replaced by a remark, which stands where the model reads, or
// in a list of resources by nothing. What was found is not noted again.
func (r *run) rewrite(list string) []byte {
	quiet := &run{c: r.c, Options: r.Options, Result: r.Result}
	replace := func(block []byte) ([]byte, bool) {
		why := quiet.part(block)
		switch {
		case why == "":
			return block, true
		case list == "resources":
			return nil, false
		case list == "contents":
			uri, _ := wire.Get(block, "uri")
			if uri == nil {
				uri = []byte(`""`)
			}
			b := append(append([]byte(`{"uri":`), uri...), `,"text":`...)
			return append(wire.AppendQuote(b, remark(why)), '}'), true
		}
		return append(wire.AppendQuote([]byte(`{"type":"text","text":`), remark(why)), '}'), true
	}
	if list != "messages" {
		return mapped(r.items, replace)
	}
	return mapped(r.items, func(message []byte) ([]byte, bool) {
		content, ok := wire.Get(message, "content")
		switch {
		case !ok:
			return message, true
		case content[0] == '[':
			return wire.SetMember(message, mapped(content, replace), "content"), true
		}
		content, _ = replace(content)
		return wire.SetMember(message, content, "content"), true
	})
}

func remark(why string) string { return "[Rootbound took this out: " + why + "]" }

// mapped returns an array with each element as f has it; f reports whether it stays.
func mapped(array []byte, f func([]byte) ([]byte, bool)) []byte {
	out := []byte{'['}
	for item := range wire.Items(array) {
		if item, stays := f(item); stays {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, item...)
		}
	}
	return append(out, ']')
}

// part looks at one part, and returns why it is to be taken out, or nothing.
func (r *run) part(p []byte) (why string) {
	if r.does(Paths) && r.Outside != nil {
		for uri := range uris(p) {
			if !r.Outside(uri) {
				continue
			}
			const text = "a file outside the directories that are open to this server"
			if r.found(Paths, text) {
				why = text
			}
		}
	}
	if why == "" && r.does(Types) {
		resource, _ := wire.Get(p, "resource")
		for _, v := range [][]byte{p, resource} {
			if text := mistyped(v); text != "" && r.found(Types, "%s", text) {
				why = text
			}
		}
	}
	return why
}
