package guard_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
)

// While everything is paused every call waits, also what no rule asks for.
func TestPause(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, `{}`)
	a.desk.Pause(true)
	c.call("look", `{}`)
	q := a.waits()
	if want := `files: "look" is held, because calls are paused`; q.Head != want || !q.Paused {
		t.Errorf("%+v", q)
	}
	a.answer(approval.Reply{Note: "not now"})
	if got := c.done(); !strings.Contains(got, "not now") || a.runs() != 0 {
		t.Errorf("the model reads %q", got)
	}
	c.call("look", `{}`)
	a.waits()
	a.desk.Pause(false)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	a.desk.Pause(true)
	c.call("look", `{"path":"`+a.dir+`/f"}`)
	a.waits()
	if err := os.Symlink("/etc/passwd", filepath.Join(a.dir, "f")); err != nil {
		t.Fatal(err)
	}
	a.desk.Pause(false)
	if got := c.done(); !strings.Contains(got, "outside the directories that are open now") || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	a.desk.Pause(true)
	c.progress = true
	c.call("write_file", `{}`)
	first := c.next()
	a.answer(yes) // it is let through to be asked about
	for q := a.waits(); q.Paused; q = a.waits() {
		time.Sleep(time.Millisecond)
	}
	if second := c.next(); progressOf(t, second) <= progressOf(t, first) {
		t.Errorf("the client hears %s, and then %s", first, second)
	}
	a.answer(yes)
	if got := c.done(); got != "done" || a.runs() != 2 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
}

func progressOf(t *testing.T, line string) (n float64) {
	t.Helper()
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err == nil {
		v, _ := wire.Get(m.Params(), "progress")
		n, err = strconv.ParseFloat(string(v), 64)
	}
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return n
}

// What a client answers while everything is paused is held as well: it may let something else answer than a person.
func TestPauseWhileAClientIsAsked(t *testing.T) {
	for _, era := range []exchange.Era{exchange.Legacy, exchange.Modern} {
		a := newAsked(t, policy.Never, nil)
		c := a.connect(era, canAsk)
		c.call("write_file", `{}`)
		_, _, answer := c.elicited()
		a.desk.Pause(true)
		answer(`{"action":"accept","content":{"decision":"allow once"}}`)
		for q := a.waits(); !q.Paused; q = a.waits() {
			time.Sleep(time.Millisecond)
		}
		if a.runs() != 0 {
			t.Errorf("%v: it ran while everything was paused", era)
		}
		a.desk.Pause(false)
		if got := c.done(); got != "done" || a.runs() != 1 {
			t.Errorf("%v: the model reads %q, and it ran %d times", era, got, a.runs())
		}
	}
}
