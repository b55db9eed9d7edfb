package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/wire"
)

// changed is the call of r with other arguments, as a person wrote them. It is judged as if it had come so: by the tool's
// schema, by the roots and by the rules; that they would ask is no hindrance, since a person asks for it.
func (g *Guard) changed(r *exchange.Request, args []byte) (*subject, error) {
	var text bytes.Buffer
	if err := json.Compact(&text, args); err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	args = text.Bytes() // on one line, with each number as it is written
	if args[0] != '{' {
		return nil, errors.New("reading the arguments: they must be an object")
	}
	if _, err := wire.Scan(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"x","params":%s}`, args), wire.Strict); err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	c := r.With(r.Msg.WithParams(wire.SetMember(r.Msg.Params(), args, "arguments")))
	c.Trail = exchange.NewTrail(r.Trail.ID, g.opt.Now()) // that of r begins anew when r goes on
	c = g.fillDefaults(c)
	args, _ = wire.Get(c.Msg.Params(), "arguments")
	if t, listed := g.listed(wire.GetString(c.Msg.Params(), "name")); listed && t.schema != nil {
		switch invalid, unusable := results.Valid(t.schema, args); {
		case unusable != nil:
			return nil, fmt.Errorf("checking the arguments against the tool's schema: it cannot be used: %v", unusable)
		case invalid != nil:
			return nil, fmt.Errorf("the arguments are not what the tool takes: %v", invalid)
		}
	}
	c, err := g.again(c)
	if err != nil {
		return nil, err
	}
	call, d := g.decide(c)
	if d.Verdict == policy.Deny {
		if d.Rule != "" {
			d.Reason += " (" + d.Rule + ")"
		}
		return nil, errors.New(d.Reason)
	}
	s := g.subject(c, call, d)
	return &s, nil
}

// change says what a person would be asked about if the arguments were others.
func (a *asking) change(args []byte) (approval.Question, error) {
	s, err := a.g.changed(a.r, args)
	if err != nil {
		return approval.Question{}, err
	}
	return s.question(), nil
}

// put makes the changed call the one that goes on, with the trail of the one that came.
func (a *asking) put(s *subject) *exchange.Request {
	r := *s.r
	a.r.Trail.Reset(a.r.Trail.Begun)
	for _, n := range s.r.Trail.Notes() {
		a.r.Trail.Add(n)
	}
	r.Trail = a.r.Trail
	return &r
}

// heldCall is what is held of an allowed call while a stateless server has given it back: its digest, and the arguments where a
// person changed them.
func heldCall(digest string, args []byte) []byte {
	if args == nil {
		return []byte(digest)
	}
	return append([]byte(digest+"\n"), args...)
}

// was reports whether what is held is that of this call, and the call that a person made of it, if that is another.
func (a *asking) was(held []byte) (instead *subject, ok bool) {
	digest, args, changed := bytes.Cut(held, []byte("\n"))
	if !changed {
		return nil, string(digest) == a.digest
	}
	s, err := a.g.changed(a.r, args)
	return s, err == nil && s.digest == string(digest)
}

const (
	// maxChanged is how much of a value that was changed is told, in bytes, and maxChanges of how many.
	maxChanged = 1000
	maxChanges = 12
)

// changes says how arguments differ, member by member: for the log without their values, which it leaves out where they are
// secrets, and for the model with them.
func changes(before, after []byte, values bool) string {
	var list []string
	say := func(name, what string, v []byte) {
		if values && v != nil {
			what += ": " + approval.Line(string(v), maxChanged)
		}
		list = append(list, argument(name)+" "+what)
	}
	for name, v := range wire.Members(after) {
		switch old, had := wire.Get(before, name); {
		case !had:
			say(name, "was added", v)
		case !bytes.Equal(wire.Canonical(old), wire.Canonical(v)):
			say(name, "was changed", v)
		}
	}
	for name := range wire.Members(before) {
		if _, has := wire.Get(after, name); !has {
			say(name, "was taken out", nil)
		}
	}
	if n := len(list) - maxChanges; n > 0 {
		list = append(list[:maxChanges], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, "; ")
}

// tellChanged has the model read, before what the server answers, that a person changed the arguments.
func tellChanged(o exchange.Outcome, id, changes string) exchange.Outcome {
	if o.Msg == nil {
		return o
	}
	text := fmt.Sprintf("The user changed the arguments of this call before it ran (call %s): %s. What follows is the result of the changed call.", id, changes)
	if e := o.Msg.Error(); e != nil {
		o.Msg = wire.NewErrorObject(o.Msg.ID(), wire.SetMember(e, wire.Quote(text+" "+wire.GetString(e, "message")), "message"))
		return o
	}
	block := wire.SetMember([]byte(`{"type":"text"}`), wire.Quote(text), "text")
	content := append([]byte{'['}, block...)
	if list, ok := wire.Get(o.Msg.Result(), "content"); ok && len(list) > 0 && list[0] == '[' {
		for item := range wire.Items(list) {
			content = append(append(content, ','), item...)
		}
	}
	o.Msg = o.Msg.WithResult(wire.SetMember(o.Msg.Result(), append(content, ']'), "content"))
	return o
}
