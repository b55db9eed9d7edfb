package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
)

// guarded is a page, with a browser that was let in and follows its stream, and a guard of which only the desk is real.
type guarded struct {
	*browser
	desk   *approval.Desk
	in     *stream
	guard  string // its key
	values map[string]string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	dir := t.TempDir()
	desk := approval.NewDesk(approval.DeskOptions{})
	door, err := approval.Listen(approval.DoorOptions{Dir: dir, Server: "files", Desk: desk, Report: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { door.Close() })
	s := serve(t, Options{Dir: dir})
	b := s.letIn()
	g := &guarded{browser: b, desk: desk, in: b.stream(), values: map[string]string{}}
	for g.guard == "" {
		g.step()
	}
	return g
}

// step takes one event.
func (g *guarded) step() (kind, key, value string) {
	g.t.Helper()
	kind, key, value = g.in.next()
	switch {
	case kind == "":
		g.t.Fatal("the stream has ended")
	case kind == "guard":
		g.guard = key
	case value == "null":
		delete(g.values, key)
	case kind == "question":
		g.values[key] = value
	}
	return kind, key, value
}

// ask puts a question on the desk. Ended gets the answer.
func (g *guarded) ask(id string, change func([]byte) (approval.Question, error)) (ended chan approval.Answer) {
	ended = make(chan approval.Answer, 1)
	q := approval.Question{
		ID: id, Server: "files", Tool: "write", Head: "head", Digest: "d-" + id, Args: json.RawMessage(`{"b":"<x>","a":9007199254740993}`), Size: 33,
		Choices: []approval.Choice{{}, {Allow: true}}, Remember: true, Targets: []string{"/w/a", "/w/b"},
	}
	g.desk.Ask(g.t.Context(), approval.Call{Question: q, Key: id, Session: id, Change: change, Answered: func(a approval.Answer) { ended <- a }})
	return ended
}

// post asks the page for something, and reads what comes.
func (g *guarded) post(path, body string, into any) int {
	g.t.Helper()
	status, _, text := g.do("POST", path, body)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		g.t.Fatalf("%s: %d %s", path, status, text)
	}
	return status
}

func TestAQuestionIsShownAndAnswered(t *testing.T) {
	g := newGuarded(t)
	ended := g.ask("c1", nil)
	for len(g.values) == 0 {
		g.step()
	}
	var v waitingValue
	if err := json.Unmarshal([]byte(g.values[g.guard+" c1"]), &v); err != nil || v.Tool != "write" || v.Place != "/w/a" || v.More != 1 {
		t.Errorf("the page is told %+v, %v", v, err)
	}
	var q struct {
		approval.Question
		Text      string
		Cut, Edit bool
	}
	if got := g.post("/api/question", `{"guard":"`+g.guard+`","id":"c1"}`, &q); got != 200 || q.Digest != "d-c1" || q.Args != nil || !q.Edit || q.Cut || q.Text != "{\n  \"b\": \"<x>\",\n  \"a\": 9007199254740993\n}" {
		t.Errorf("%d: all of it is %+v", got, q)
	}
	var refused struct{ Code, Text string }
	for body, want := range map[string]string{
		`{"guard":"` + g.guard + `","id":"c2"}`:                  "gone",
		`{"guard":"nobody","id":"c1"}`:                           "gone",
		`{"guard":"` + g.guard + `","id":"c1","args":{"a":"b"}}`: "",
	} {
		if got := g.post("/api/question", body, &refused); got < 400 || refused.Code != want || refused.Text == "" {
			t.Errorf("%s: %d %+v", body, got, refused)
		}
	}
	var done []struct{ ID, Code, Text string }
	answer := func(reply string) {
		t.Helper()
		done = nil
		g.post("/api/answers", `{"answers":[{"guard":"`+g.guard+`","id":"c1","reply":`+reply+`}]}`, &done)
	}
	answer(`{"allow":true,"digest":"another"}`)
	if len(done) != 1 || done[0].Code != "changed" {
		t.Errorf("a yes to what is not shown: %+v", done)
	}
	answer(`{"allow":true,"under":"/elsewhere"}`)
	if len(done) != 1 || !strings.Contains(done[0].Text, "is not beneath") {
		t.Errorf("a yes for another directory: %+v", done)
	}
	answer(`{"allow":true,"digest":"d-c1","for":60000000000}`)
	if a := <-ended; !a.Allow || a.For != time.Minute || a.Road != approval.ByPage || done[0].Code != "" {
		t.Errorf("the answer is %+v, %+v", a, done)
	}
	for len(g.values) > 0 {
		g.step()
	}
	answer(`{"allow":true}`)
	if done[0].Code != "gone" {
		t.Errorf("an answer to nothing: %+v", done)
	}
}

func TestArgumentsAreEditedAsWritten(t *testing.T) {
	g := newGuarded(t)
	var seen []string
	ended := g.ask("c1", func(args []byte) (approval.Question, error) {
		seen = append(seen, string(args))
		if strings.Contains(string(args), "bad") {
			return approval.Question{}, errors.New("it is bad")
		}
		return approval.Question{ID: "c1", Digest: "other", Args: args}, nil
	})
	for len(g.values) == 0 {
		g.step()
	}
	var out struct{ Digest, Code, Text string }
	if got := g.post("/api/question", `{"guard":"`+g.guard+`","id":"c1","args":{"x":"bad"}}`, &out); got != 422 || out.Text != "it is bad" {
		t.Errorf("%d %+v", got, out)
	}
	out.Text = ""
	if got := g.post("/api/question", `{"guard":"`+g.guard+`","id":"c1","args":{"n":9007199254740993,"s":"<&>"}}`, &out); got != 200 || out.Digest != "other" {
		t.Errorf("%d %+v", got, out)
	}
	var done []struct{ ID, Code, Text string }
	g.post("/api/answers", `{"answers":[{"guard":"`+g.guard+`","id":"c1","reply":{"allow":true,"digest":"other","args":{"n":9007199254740993,"s":"<&>"}}}]}`, &done)
	a := <-ended
	if want := `{"n":9007199254740993,"s":"<&>"}`; string(a.Args) != want || len(seen) != 3 || seen[1] != want {
		t.Errorf("it runs with %s; judged were %q; %+v", a.Args, seen, done)
	}
}

func TestManyAreAnsweredAtOnce(t *testing.T) {
	g := newGuarded(t)
	const n = 200
	var ended []chan approval.Answer
	var all []string
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		ended = append(ended, g.ask(id, nil))
		all = append(all, `{"guard":"`+g.guard+`","id":"`+id+`","reply":{"allow":false,"note":"no"}}`)
	}
	var done []struct{ ID, Code, Text string }
	g.post("/api/answers", `{"answers":[`+strings.Join(all, ",")+`]}`, &done)
	if len(done) != n {
		t.Fatalf("%d were answered", len(done))
	}
	for i, d := range done {
		if a := <-ended[i]; a.Allow || a.Note != "no" || d.Code != "" || d.Text != "" || d.ID != fmt.Sprintf("c%d", i) {
			t.Errorf("%s: %+v, %+v", d.ID, a, d)
		}
	}
}

func TestPauseOnThePage(t *testing.T) {
	g := newGuarded(t)
	for _, paused := range []bool{true, false} {
		var out struct{ Text string }
		if got := g.post("/api/pause", fmt.Sprintf(`{"server":"","paused":%t}`, paused), &out); got != 200 || g.desk.Paused() != paused {
			t.Errorf("paused %t: %d %+v, and it is %t", paused, got, out, g.desk.Paused())
		}
	}
}
