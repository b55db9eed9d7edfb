package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// samePassage compares what passed the taps on both sides of the guard, message by message, and with what passed without
// a guard, where only the order and the ids may differ: calls at once are as they come.
func samePassage(t *testing.T, direct, outer, inner recording) {
	t.Helper()
	if len(outer) == 0 || len(outer) != len(inner) || len(outer) != len(direct) {
		t.Fatalf("the client started the guard %d times, the guard started the server %d times; without it the client started the server %d times",
			len(outer), len(inner), len(direct))
	}
	for i := range outer {
		d, o, in := read(t, direct[i]), read(t, outer[i]), read(t, inner[i])
		same(t, fmt.Sprintf("start %d: the server got", i+1), in.toServer, o.toServer)
		same(t, fmt.Sprintf("start %d: the client got", i+1), o.toClient, in.toClient)
		same(t, fmt.Sprintf("start %d: without and with the guard the server got", i+1), anyOrder(d.toServer), anyOrder(in.toServer))
		same(t, fmt.Sprintf("start %d: without and with the guard the client got", i+1), anyOrder(d.toClient), anyOrder(o.toClient))
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("%s, line %d\n%.1000q\nand was sent\n%.1000q", what, i, g, w)
			return
		}
	}
}

var idRE = regexp.MustCompile(`"(id|requestId|progressToken)":(\d+|"[^"]*")`)

// anyOrder makes the messages of two runs comparable.
func anyOrder(lines []string) []string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		lines[i] = idRE.ReplaceAllString(line, `"$1":0`)
	}
	slices.Sort(lines)
	return lines
}

// traffic is what passed a tap in each direction: lines with their ends, without what the guard is there to change.
type traffic struct{ toServer, toClient []string }

// message is what this package reads of a message.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name          string
		RequestID     json.RawMessage
		RequestState  *string
		ProgressToken json.RawMessage
		Meta          struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
	Result struct {
		RequestState  string
		InputRequests map[string]struct{ Method string }
	}
}

// rootsOnly reports whether m gives a request back for roots and for nothing else.
func (m *message) rootsOnly() bool {
	for _, q := range m.Result.InputRequests {
		if q.Method != "roots/list" {
			return false
		}
	}
	return len(m.Result.InputRequests) > 0
}

var (
	declaredRE = regexp.MustCompile(`"roots":\{[^{}]*\}`)
	ownID      = []byte(`"rb-`)
)

// read leaves out of a recording what policy changes: how roots are declared, questions for roots and their answers in
// either era, changes of roots, and the guard's own pings. It also leaves out progress and answers of requests
// that the client cancelled, which a guard that knows it drops.
func read(t *testing.T, r struct{ in, out []byte }) traffic {
	t.Helper()
	toServer, toClient := parse(t, r.in), parse(t, r.out)
	asked := map[string]bool{}       // ids of questions for roots
	givenBack := map[string][]line{} // requests given back for roots, by state
	for _, m := range toClient {
		switch {
		case m.Method == "roots/list":
			asked[string(m.ID)] = true
		case m.rootsOnly():
			givenBack[m.Result.RequestState] = append(givenBack[m.Result.RequestState], m)
		}
	}
	cancelled := map[string]bool{}        // ids of requests whose answer is left out
	token := map[string]string{}          // of the progress of a request, by id
	silent := map[string]bool{}           // tokens whose progress is left out
	first := map[string]json.RawMessage{} // the id of the first try, by that of a later one
	var out traffic
	for _, m := range toServer {
		if m.ID != nil {
			token[string(m.ID)] = string(m.Params.Meta.ProgressToken)
		}
		switch {
		case m.Method == "notifications/roots/list_changed", m.Method == "" && asked[string(m.ID)]:
			continue
		case m.Method == "ping" && bytes.HasPrefix(m.ID, ownID):
			cancelled[string(m.ID)] = true
			continue
		case m.Method == "notifications/cancelled":
			cancelled[string(m.Params.RequestID)] = true
			silent[token[string(m.Params.RequestID)]] = true
		case m.Params.RequestState != nil && len(givenBack[*m.Params.RequestState]) > 0:
			given := givenBack[*m.Params.RequestState]
			givenBack[*m.Params.RequestState] = given[1:]
			first[string(m.ID)] = given[0].ID
			if id, ok := first[string(given[0].ID)]; ok {
				first[string(m.ID)] = id
			}
			continue
		}
		if m.Method == "initialize" || strings.Contains(m.text, `"io.modelcontextprotocol/clientCapabilities":`) {
			m.text = declaredRE.ReplaceAllString(m.text, `"roots":0`)
		}
		out.toServer = append(out.toServer, m.text)
	}
	for _, m := range toClient {
		switch {
		case m.Method == "roots/list", m.rootsOnly(),
			m.Method == "" && cancelled[string(m.ID)],
			m.Method == "notifications/progress" && silent[string(m.Params.ProgressToken)]:
			continue
		}
		if id, ok := first[string(m.ID)]; ok {
			m.text = strings.Replace(m.text, fmt.Sprintf(`"id":%s`, m.ID), fmt.Sprintf(`"id":%s`, id), 1)
		}
		out.toClient = append(out.toClient, m.text)
	}
	return out
}

type line struct {
	message
	text string
}

func parse(t *testing.T, stream []byte) []line {
	t.Helper()
	var out []line
	for text := range bytes.Lines(stream) {
		l := line{text: string(text)}
		if err := json.Unmarshal(text, &l.message); err != nil {
			t.Fatalf("reading what passed a tap: %v in %.1000q", err, text)
		}
		out = append(out, l)
	}
	return out
}
