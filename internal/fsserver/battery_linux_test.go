package fsserver

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
)

// TestBattery makes every attempt, in every variant. After each, nothing outside has changed, the server answers, and it has
// not grown.
func TestBattery(t *testing.T) {
	inEveryVariant(t, variants, func(t *testing.T, v variant) {
		for i, a := range battery {
			if a.once && v != variants[0] || a.bound && v.osRoot {
				continue
			}
			t.Run(a.id, func(t *testing.T) {
				for _, fault := range attempted(t, a, eras[i%2], nil) {
					t.Errorf("%s: %s", a.what, fault)
				}
			})
		}
	})
}

// What is tried on the program itself, as a client has it: one attempt of each kind, without mounts, which need a namespace.
func TestBatteryOnTheProgram(t *testing.T) {
	ids := strings.Fields("E01 E03 E09 E12 E15 E17 E21 E23 E27 E30 E32 E33 E50 E52 E53 E55 E57 E59 E61 E62 E63 E66 E67 E68 E70 E72 E74 E76 E78 E80 E82 E85 E96 E99 E101 E102 E109 E112 E117 E118 E121 E122 E124 E131 E133 E134")
	for _, a := range battery {
		strict := a.files.StrictLinks
		if !strict && !slices.Contains(ids, a.id) {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			var p *process
			faults := attempted(t, a, exchange.Legacy, func(c *trial) exchange.Handler {
				args := []string{c.w + "/R", c.w + "/S"}
				if strict {
					args = append(args, "--strict-links")
				}
				p = startProcess(t, args...)
				return exchange.Work(p.answer)
			})
			p.end(t)
			for _, fault := range faults {
				t.Errorf("%s: %s", a.what, fault)
			}
		})
	}
}

// attempted makes an attempt on a server, ours when it is nil, and returns what went wrong.
func attempted(t *testing.T, a attempt, era exchange.Era, server func(c *trial) exchange.Handler) []string {
	c := newTrial(t, a.tree, a.files)
	c.shows, c.era = a.shows, era
	if server != nil {
		c.server, c.foreign = server(c), true
	}
	if a.make != nil {
		if err := a.make(t, c.w); errors.Is(err, errors.ErrUnsupported) {
			t.Logf("left out: %s: %v", a.id, err)
			return nil
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(c.w + "/outside") // where no path may lead
	before := c.outside(t)
	grown := growth(t)
	for _, s := range a.steps {
		if s.happens != nil {
			if err := s.happens(t, c.w); errors.Is(err, errors.ErrUnsupported) {
				t.Logf("left out: %s: %v", a.id, err)
				return nil
			} else if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got := c.call(t, s.tool, s.args); !c.satisfies(got, s.want) {
			c.fault("%s %.100s: %s, want %q", s.tool, c.path(s.args), got, s.want)
		}
	}
	if a.check != nil {
		if err := a.check(c.w); err != nil {
			c.fault("%v", err)
		}
	}
	if after := c.outside(t); after != before {
		c.fault("what lies outside has changed, from\n%s\nto\n%s", before, after)
	}
	if got := c.call(t, "read_text_file", `{"path":"$W/S/two.txt"}`); got.text != "second root" {
		c.fault("afterwards a plain read answers %s", got)
	}
	if got := grown(); got > mostGrowth() {
		c.fault("it grew by %d MiB", got>>20)
	}
	return c.faults
}

// satisfies reports whether an answer is what a step wants. A foreign server has no codes, so any error is as good as another.
func (c *trial) satisfies(r reply, want string) bool {
	verb, rest, _ := strings.Cut(want, " ")
	switch {
	case r.none || r.code == codeUnknownTool || r.code == codeArguments && !strings.Contains(rest, codeArguments):
		return false
	case verb == wantEither:
		return true
	case verb == "=":
		return !r.isError && r.text == rest
	case verb == "~":
		return !r.isError && strings.Contains(r.text, rest)
	case verb == "!":
		return r.isError && strings.Contains(r.text, rest)
	case verb != wantDeny || !r.isError:
		return false
	}
	if not, ok := strings.CutPrefix(rest, "!"); ok {
		return !strings.Contains(r.text, not)
	}
	return rest == "" || c.foreign || slices.Contains(strings.Split(rest, "|"), r.code)
}

// The attempts are all there are for Linux, each once.
func TestBatteryIsWhole(t *testing.T) {
	// Not here: E45 to E48, which are for other systems; E125 to E130, which are about the client's roots (roots,
	// internal/guard); E136 to E144, which are TestRaces; the rest are gaps.
	const ids = "E01 E02 E03 E04 E05 E06 E07 E09 E10 E11 E12 E13 E14 E15 E16 E17 E18 E19 E20 E21 E22 E23 E24 E25 E27 E28 E29 E30 E31 E32 E33 E34 E35 " +
		"E38 E39 E40 E41 E42 E43 E44 E49 E50 E51 E52 E53 E54 E55 E56 E57 E58 E59 E61 E62 E63 E64 E65 E66 E67 E68 E70 E71 E72 E74 E75 E76 E78 E80 E82 " +
		"E83 E85 E86 E87 E88 E89 E90 E91 E93 E94 E95 E96 E99 E100 E101 E102 E103 E104 E105 E106 E107 E109 E110 E112 E114 E115 E116 E117 E118 E121 E122 E124 E131 E133 E134"
	seen := map[string]int{}
	for _, a := range battery {
		id, _, _ := strings.Cut(a.id, " ")
		seen[id]++
		if len(a.steps) == 0 || a.what == "" {
			t.Errorf("%s does nothing", a.id)
		}
	}
	for id := range strings.FieldsSeq(ids) {
		if seen[id] == 0 {
			t.Errorf("%s is missing", id)
		}
		delete(seen, id)
	}
	for id := range seen {
		t.Errorf("%s is not in the list", id)
	}
}
