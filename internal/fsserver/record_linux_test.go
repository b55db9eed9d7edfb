package fsserver

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// recorded calls a tool with a trail, and counts how often the call is recorded.
func recorded(t *testing.T, c *trial, tool, args string, record error) (times int, notes []exchange.Note, answer string) {
	t.Helper()
	r := request(exchange.Legacy, "tools/call", `{"name":"`+tool+`","arguments":`+c.path(args)+`}`, c.set)
	r.Trail = exchange.NewTrail("c1", time.Time{})
	r.Trail.OnRecord(func() error { times++; return record })
	o := exchange.Do(t.Context(), c.server, r)
	return times, r.Trail.Notes(), string(o.Msg.Bytes())
}

// Whoever changes something has it recorded before; what cannot be recorded changes nothing. Who only reads leaves that to
// the stage in front.
func TestNothingChangesUnrecorded(t *testing.T) {
	for _, tool := range tools {
		args := argumentsFor(tool, "$W/R/ok.txt")
		if tool.writes && tool.refused == nil {
			t.Errorf("%s does not say what it refuses", tool.name)
		}
		c := newTrial(t, map[string]string{"R/new/": ""}, rootfs.Options{})
		before := c.inside(t)
		times, notes, got := recorded(t, c, tool.name, args, errors.New("the disk is full"))
		if want := map[bool]int{true: 1, false: 0}[tool.writes]; times != want || len(notes) > 0 {
			t.Errorf("%s is recorded %d times, noted %v", tool.name, times, notes)
		}
		if tool.writes && (!strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"log"`)) {
			t.Errorf("%s answers %s", tool.name, got)
		}
		if after := c.inside(t); after != before {
			t.Errorf("%s has changed\n%s\nto\n%s", tool.name, before, after)
		}
	}
}

// What is refused because of where it leads is not recorded as done, whether it is tried or only shown.
func TestWhatIsRefusedIsNotRecorded(t *testing.T) {
	c := newTrial(t, map[string]string{"R/out": "-> ../outside/f", "T/d/f": "text", "R/secret/f": "text"}, rootfs.Options{})
	c.set = roots.NewSet(append(c.set.Dirs(), resolve(t, c.w+"/T", roots.ReadOnly))...)
	deny, err := NewDeny([]string{"secret"}, false)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Own: []string{c.w + "/R/own", c.w + "/R/own.new"}, Deny: deny})
	t.Cleanup(s.Close)
	grow(t, c.w, map[string]string{"R/own": "text"})
	c.server = s
	for _, tool := range tools {
		if !tool.writes || tool == &restorePath {
			continue
		}
		for path, reason := range map[string]string{"$W/outside/f": reasonOutside, "$W/R/own": reasonOwn, "$W/T/d/f": reasonReadOnly, "$W/R/secret/f": reasonName} {
			if tool == &createDirectory {
				path = strings.TrimSuffix(path, "f") + ".new"
			}
			ways := []string{argumentsFor(tool, path)}
			switch tool {
			case &copyFile:
				ways = []string{`{"source":"$W/R/ok.txt","destination":"` + path + `","overwrite":true}`}
			case &moveFile:
				ways = append(ways, `{"source":"$W/R/ok.txt","destination":"`+path+`.new"}`)
			case &editFile:
				ways = append(ways, strings.Replace(ways[0], `{"path"`, `{"dryRun":true,"path"`, 1))
			}
			for _, args := range ways {
				times, notes, got := recorded(t, c, tool.name, args, nil)
				denied := len(notes) == 1 && notes[0].Denied && notes[0].Code == reason
				if times > 0 || !denied || !strings.Contains(got, `"isError":true`) {
					t.Errorf("%s %s is recorded %d times, noted %v, and answers %s", tool.name, args, times, notes, got)
				}
			}
		}
	}
}

// Who reads what is not served in a root is refused, too, and no other list of roots would change that.
func TestWhatIsNotServedIsNoted(t *testing.T) {
	c := newTrial(t, map[string]string{"R/.env": "KEY=1", "R/first": "text"}, rootfs.Options{StrictLinks: true})
	if err := os.Link(c.w+"/R/first", c.w+"/R/second"); err != nil {
		t.Fatal(err)
	}
	deny, err := NewDeny(nil, true)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Deny: deny, Files: rootfs.Options{StrictLinks: true}})
	t.Cleanup(s.Close)
	c.server = s
	for path, want := range map[string]exchange.Note{"$W/R/.env": {Code: reasonName, Path: c.w + "/R/.env"}, "$W/R/second": {Code: reasonHardLink, Path: c.w + "/R/second"}} {
		_, notes, got := recorded(t, c, readTextFile.name, `{"path":"`+path+`"}`, nil)
		if len(notes) != 1 || !notes[0].Denied || notes[0].Code != want.Code || notes[0].Path != want.Path {
			t.Errorf("%s: noted %v, answered %s", path, notes, got)
		}
	}
}
