package main

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// call is a request that does something.
type call struct {
	server *server
	ctx    context.Context
	r      *exchange.Request
}

// argument returns an argument that is a string.
func (c *call) argument(name string) string {
	return wire.GetString(c.r.Msg.Params(), "arguments", name)
}

// notify tells the client something.
func (c *call) notify(method string, params object) {
	c.r.Caller.Notify(wire.NewNotification(method, encode(params)))
}

// log sends a log message, if the client wants those.
func (c *call) log(text string) {
	if c.server.logs(c.r, "info") {
		c.notify("notifications/message", object{"level": "info", "logger": "everything", "data": text})
	}
}

// missing is the outcome of a request whose client did not declare what it takes.
func (c *call) missing(capability string) exchange.Outcome {
	if c.r.Era == exchange.Legacy {
		return exchange.Refused(c.r, "the client does not have the capability "+capability, nil)
	}
	data := object{"requiredCapabilities": object{capability: object{}}}
	return exchange.Fail(c.r, -32021, "the client does not have the capability "+capability, encode(data))
}

// question is something that is asked of the client, and what a good answer has.
type question struct {
	key, method string
	params      object
	good        func(answer []byte) bool
}

// ask asks until all answers are good, and returns them by key. Without an answer the outcome says so. What a stateless client
// answers before it is asked counts too.
func (c *call) ask(questions ...question) (map[string][]byte, *exchange.Outcome) {
	answers := map[string][]byte{}
	questions = slices.DeleteFunc(questions, func(q question) bool {
		v, ok := wire.Get(c.r.Msg.Params(), "inputResponses", q.key)
		if ok = ok && c.r.Era == exchange.Modern && q.good(v); ok {
			answers[q.key] = v
		}
		return ok
	})
	for len(questions) > 0 {
		asked := make([]exchange.Question, len(questions))
		for i, q := range questions {
			if !c.r.Caller.CanAsk(q.method) {
				o := c.missing(exchange.CapabilityFor(q.method))
				return nil, &o
			}
			asked[i] = exchange.Question{Key: q.key, Method: q.method, Params: encode(q.params)}
		}
		done := make(chan []exchange.Answer, 1)
		c.r.Caller.Ask(c.ctx, asked, func(a []exchange.Answer) { done <- a })
		var again []question
		for i, a := range <-done {
			switch {
			case a.Error != nil:
				o := exchange.Refused(c.r, "the question "+questions[i].key+" was not answered: "+wire.GetString(a.Error, "message"), nil)
				return nil, &o
			case questions[i].good(a.Result):
				answers[questions[i].key] = a.Result
			default:
				again = append(again, questions[i])
			}
		}
		questions = again
	}
	return answers, nil
}

// text is a result with a text.
func text(s string) object { return object{"content": list{object{"type": "text", "text": s}}} }

// form asks the person to fill in a form. Any answer is good that says what the person did; where something must be filled in, one
// that does that.
func form(key, message string, properties object, required ...string) question {
	if required == nil {
		required = []string{}
	}
	return question{key, "elicitation/create",
		object{"message": message, "requestedSchema": object{"type": "object", "properties": properties, "required": required}},
		func(answer []byte) bool {
			action := wire.GetString(answer, "action")
			if action != "accept" {
				return action == "decline" || action == "cancel"
			}
			for _, name := range required {
				if v, ok := wire.Get(answer, "content", name); !ok || len(v) == 0 {
					return false
				}
			}
			return true
		}}
}

// sample asks the client's model.
func sample(key, prompt string, tokens int) question {
	return question{key, "sampling/createMessage",
		object{"messages": list{object{"role": "user", "content": object{"type": "text", "text": prompt}}}, "maxTokens": tokens},
		func(answer []byte) bool {
			_, ok := wire.Get(answer, "content")
			return ok
		}}
}

// whichRoots asks for the roots.
func whichRoots(key string) question {
	return question{key, "roots/list", object{}, func(answer []byte) bool {
		v, _ := wire.Get(answer, "roots")
		var roots []struct{ URI string }
		return json.Unmarshal(v, &roots) == nil
	}}
}
