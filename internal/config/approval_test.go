package config

import (
	"strings"
	"testing"
	"time"
)

// A lower layer makes a person be asked for a shorter time and in more places, and never the other way round.
func TestApproval(t *testing.T) {
	h := newHome(t)
	h.write(user, "[approval]\nwait = 120\npending = 20\n[server.a]\ncommand = \"a\"\n[server.a.approval]\nwait = 60\n")
	plan, err := Resolve(h.sys, Flags{})
	if err != nil {
		t.Fatal(err)
	}
	a := plan.Approval
	if a.WaitFor() != time.Minute || a.PendingAfter() != 20*time.Second || a.ClaudeAlwaysAsk.Value {
		t.Errorf("got %+v", a)
	}
	h.write(project, "[approval]\nwait = 30\nclaude_always_ask = true\n")
	if plan, err = Resolve(h.sys, Flags{}); err != nil {
		t.Fatal(err)
	}
	if a := plan.Approval; a.WaitFor() != 30*time.Second || !a.ClaudeAlwaysAsk.Value {
		t.Errorf("with a project's file: %+v", a)
	}
	h.write(project, "[approval]\nwait = 3000\n")
	if plan, err = Resolve(h.sys, Flags{}); err != nil {
		t.Fatal(err)
	}
	if a := plan.Approval; a.WaitFor() != time.Minute || !strings.Contains(strings.Join(plan.Notes, "\n"), "approval.wait has no effect") {
		t.Errorf("with a project's file that waits longer: %+v, %q", a, plan.Notes)
	}
	h.write(project, "[server.a.approval]\npending = 5\n")
	if _, err = Resolve(h.sys, Flags{}); err == nil || !strings.Contains(err.Error(), "cannot give \"pending\"") {
		t.Errorf("with a project's file that says how long: %v", err)
	}
	for text, want := range map[string]string{
		"[approval]\nwait = 0\n":         "a whole number from 1 on",
		"[approval]\nwait = \"5m\"\n":    "has to be a number",
		"[approval]\nwaits = 5\n":        "waits",
		"[approval]\nwait = 100000000\n": "",
	} {
		h.write(user, text)
		h.write(project, "")
		_, err := Resolve(h.sys, Flags{Command: []string{"x"}})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
