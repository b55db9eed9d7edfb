package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/verify"
	"github.com/rootbound/rootbound/internal/wire"
)

// Servers that are odd end as a report, in which nothing leaked.
func TestOdd(t *testing.T) {
	var dead sync.Map
	for _, o := range []struct {
		name  string
		fault fault
		only  []string
		tools int
		note  string
		seen  string // of all that was not held
	}{
		{name: "hides tools behind pages", fault: fault{request: paged}, only: []string{"E09", "PG-01"}, tools: 16},
		{name: "says what it was asked", fault: fault{call: func(_ *faulty, tool string, args map[string]any) (string, bool, error) {
			b, _ := json.Marshal(args)
			return tool + string(b) + " 10037 10074 1975-02-03", true, nil
		}}, tools: 16, only: []string{"E0*", "E5*", "roots"}, note: "what it reads is not what is in the file"},
		{name: "refuses everything", fault: fault{call: func(*faulty, string, map[string]any) (string, bool, error) {
			return "", true, errors.New("no")
		}}, tools: 16, only: []string{"E0*", "roots"}, note: "the server serves nothing of its roots"},
		{name: "answers no call", fault: hang("read_text_file", "path", func(string) bool { return true }), tools: 16, seen: "not tried: after something harmless"},
		{name: "dies of each case", fault: fault{request: func(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
			if r.Msg.Method() != "tools/call" {
				return false
			}
			_, gone := dead.Load(f)
			path := wire.GetString(r.Msg.Params(), "arguments", "path")
			if !gone && (strings.HasSuffix(path, "plain.txt") || path == "") {
				return false
			}
			dead.Store(f, true)
			reply(exchange.Fail(r, -32000, "the server ended", nil))
			return true
		}}, tools: 16, only: []string{"E09/*", "E55/*"}, seen: "afterwards a plain read is refused"},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, o.fault, exchange.Legacy, -1, o.only...)
			if len(r.Tools) != o.tools {
				t.Errorf("%d tools, want %d", len(r.Tools), o.tools)
			}
			if o.note != "" && !strings.Contains(strings.Join(r.Server.Notes, "\n"), o.note) {
				t.Errorf("notes %q", r.Server.Notes)
			}
			if (r.Unfinished != "") != strings.HasPrefix(o.seen, "not tried") {
				t.Errorf("unfinished: %q", r.Unfinished)
			}
			n := 0
			for _, c := range r.Cases {
				switch c.Verdict {
				case verify.Leaked:
					t.Errorf("%s leaked: %s", c.ID, c.Seen)
				case verify.Failed, verify.Inconclusive:
					n++
					if o.seen == "" || !strings.Contains(c.Seen, o.seen) {
						t.Errorf("%s: %s: %s", c.ID, c.Verdict, c.Seen)
					}
				}
			}
			if (n > 0) != (o.seen != "") {
				t.Errorf("%d cases did not hold", n)
			}
		})
	}
}

// paged gives each tool on a page of its own.
func paged(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
	if r.Msg.Method() != "tools/list" {
		return false
	}
	at := 0
	fmt.Sscan(wire.GetString(r.Msg.Params(), "cursor"), &at)
	f.next.Handle(r.Session.Context(), r, func(o exchange.Outcome) {
		tools, _ := wire.Get(o.Msg.Result(), "tools")
		all := slices.Collect(wire.Items(tools))
		result := wire.SetMember(o.Msg.Result(), append(append([]byte{'['}, all[at]...), ']'), "tools")
		if at++; at < len(all) {
			result = wire.SetMember(result, wire.Quote(fmt.Sprint(at)), "nextCursor")
		}
		reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), result)})
	})
	return true
}

func TestOnly(t *testing.T) {
	for word, want := range map[string]string{
		"E09/read": "E09/read", "e09/READ": "E09/read", "E10": "E10", "MR-0*": "MR-03 MR-05 MR-06 MR-02", "E55/*-in": "E55/move-in E55/copy-in",
		"E0": "", "E09/rea": "", "*": "all", "races": "E136 E137 E138 E139 E138c E140 E141 E142 E143",
	} {
		var got []string
		for _, c := range verify.Cases(word) {
			got = append(got, c.ID)
		}
		if text := strings.Join(got, " "); text != want && (want != "all" || len(got) < 600) {
			t.Errorf("%q chooses %q", word, text)
		}
		if err := verify.CheckOnly([]string{word}); (err == nil) != (want != "") {
			t.Errorf("%q: %v", word, err)
		}
	}
	for _, word := range []string{"Q", "Q3", "questions"} {
		if err := verify.CheckOnly([]string{word}); err != nil {
			t.Error(err)
		}
	}
}
