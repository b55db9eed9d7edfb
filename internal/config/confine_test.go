package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What may be reached narrows from layer to layer as everything does.
func TestConfine(t *testing.T) {
	tests := []struct {
		name                   string
		managed, user, project string
		flags                  Flags
		want                   string // confine and net
		note                   string // part of one
	}{
		{name: "nothing", want: "false none"},
		{name: "typed", flags: Flags{Confine: true, Net: "b:2,a:1"}, want: "true b:2,a:1"},
		{name: "typed over the file", user: "confine = true\nnet = \"all\"\n", flags: Flags{Net: "none"}, want: "true none"},
		{name: "for one server", user: "confine = false\n[server.s]\ncommand = \"x\"\nconfine = true\nnet = [\"a:1\"]\n", want: "true a:1"},
		{name: "a project confines", user: "confine = false\n", project: "confine = true\n", want: "true none"},
		{name: "a project does not set free", user: "confine = true\n", project: "confine = false\n", want: "true none", note: "confine has no effect"},
		{name: "a project narrows", user: "confine = true\nnet = [\"a:1\", \"b:2\"]\n", project: "net = [\"b:2\"]\n", want: "true b:2"},
		{name: "a project does not widen", user: "confine = true\nnet = [\"a:1\"]\n", project: "net = [\"a:1\", \"c:3\"]\n", want: "true a:1", note: "net has no effect"},
		{name: "a managed file binds", managed: "confine = true\nnet = [\"a:1\"]\n", user: "confine = false\nnet = \"all\"\n", want: "true a:1", note: "is stricter"},
		{name: "within what is managed", managed: "net = \"all\"\n", user: "confine = true\nnet = [\"z:9\"]\n", want: "true z:9"},
		{name: "without confine", user: "net = \"all\"\n", want: "false all", note: "net has no effect without confine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			for name, text := range map[string]string{managed: tt.managed, user: tt.user, project: tt.project} {
				if text != "" {
					h.write(name, text)
				}
			}
			p := h.resolve(tt.flags)
			confined := "false"
			if p.Confine.Value {
				confined = "true"
			}
			if got := confined + " " + p.Net.Value.String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if found := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, tt.note) }); tt.note != "" && !found {
				t.Errorf("notes %q, want one with %q", p.Notes, tt.note)
			}
		})
	}
}

// What is allowed besides is the operator's, relative to where it is written, and the managed file's where that says it.
func TestAllowed(t *testing.T) {
	h := newHome(t)
	h.write(user, "confine = true\nallow_read = [\"x\", \"/y\"]\nallow_run = [\"git\", \"./own\"]\nallow_env = [\"A\"]\n")
	dir := h.path("user/.config/rootbound")
	p := h.resolve(Flags{AllowRead: []string{"z"}, AllowRun: []string{"sh"}, AllowEnv: []string{"B"}, AllowUnix: true})
	for _, tt := range []struct{ got, want []string }{
		{p.AllowRead.Value, []string{absolute(dir, "x"), "/y", absolute(h.sys.Dir, "z")}},
		{p.AllowRun.Value, []string{"git", absolute(dir, "./own"), "sh"}},
		{p.AllowEnv.Value, []string{"A", "B"}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("allowed (-want +got):\n%s", diff)
		}
	}
	if !p.AllowUnix.Value {
		t.Error("--allow-unix is lost")
	}
	h.write(managed, "allow_read = []\n")
	if p := h.resolve(Flags{AllowRead: []string{"z"}}); len(p.AllowRead.Value) > 0 {
		t.Errorf("%q may be read, though the managed file says nothing may", p.AllowRead.Value)
	}
	for text, want := range map[string]string{
		"net = [\"a\"]\n":   `"a" is no HOST:PORT`,
		"net = \"some\"\n":  `unknown value "some": known are none, all, and a list of HOST:PORT`,
		"confine = \"x\"\n": "has to be true or false",
	} {
		h.write(user, text)
		if _, err := Resolve(h.sys, Flags{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %s", text, err, want)
		}
	}
}
