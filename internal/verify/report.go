package verify

import (
	"cmp"
	"fmt"
	"strings"
)

// Verdict is what one case showed. The zero value is that it showed nothing.
type Verdict string

const (
	// Held: the boundary held.
	Held Verdict = "held"
	// Leaked: something outside was read, changed, or told of.
	Leaked Verdict = "leaked"
	// Failed: nothing got out, but the server does not do what it should: it hangs, ends, grows, or breaks the protocol.
	Failed Verdict = "failed"
	// ByDesign: it is allowed, and the documentation of this check says that it may be.
	ByDesign Verdict = "allowed by design"
	// NotApplicable: the server, or this machine, gives no occasion to try.
	NotApplicable Verdict = "not applicable"
	// Inconclusive: it was tried, and what came back does not tell.
	Inconclusive Verdict = "inconclusive"
)

// Severity says how bad it is when a case does not hold, in plain words.
type Severity string

const (
	// Critical: what is outside can be read or changed.
	Critical Severity = "critical"
	// High: as Critical, for one who can also put something into the roots or times it well.
	High Severity = "high"
	// Medium: the server can be stopped, or tells what is outside without its content.
	Medium Severity = "medium"
	// Low: it is against a rule and harms nobody by itself.
	Low Severity = "low"
)

// severities are all of them, the least first.
var severities = []Severity{Low, Medium, High, Critical}

// Report is what was found of one server.
type Report struct {
	Server    Server     `json:"server"`
	Tools     []Found    `json:"tools"`
	Questions []Answered `json:"questions"`
	Cases     []Result   `json:"cases"`
	// Unfinished says why not all was tried, of a server that did not go on serving.
	Unfinished string `json:"unfinished,omitempty"`
	Score      string `json:"score"`
}

// Server is what is known of the server.
type Server struct {
	Command  []string `json:"command"`
	Name     string   `json:"name,omitempty"`
	Version  string   `json:"version,omitempty"`
	Eras     []string `json:"eras"`
	Confined string   `json:"confined,omitempty"`
	// Notes are what is to be known of the whole, such as that there is nothing to judge.
	Notes []string `json:"notes,omitempty"`
	// Opened is what one without tools for files did until it had told its tools.
	Opened []string `json:"opened,omitempty"`
}

// Found is a tool that was recognised.
type Found struct {
	Role string `json:"role"`
	Name string `json:"name"`
	// Arguments are the parameters that are filled in, by what they mean.
	Arguments map[string]string `json:"arguments"`
}

// Answered is one of the things that people check by hand, in order.
type Answered struct {
	ID       string  `json:"id"`
	Era      string  `json:"era"`
	Question string  `json:"question"`
	Expected string  `json:"expected"`
	Seen     string  `json:"seen"`
	Verdict  Verdict `json:"verdict"`
	// Means says what it means that it does not hold, and Closes the command that closes it.
	Means  string `json:"means,omitempty"`
	Closes string `json:"closes,omitempty"`
}

// Result is what became of one case.
type Result struct {
	ID       string   `json:"id"`
	Era      string   `json:"era"`
	Class    string   `json:"class"`
	Attempt  string   `json:"attempt"`
	Expected string   `json:"expected"`
	Seen     string   `json:"seen"`
	Verdict  Verdict  `json:"verdict"`
	Severity Severity `json:"severity,omitempty"`
}

// Count returns how many cases and questions came to a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, q := range r.Questions {
		if q.Verdict == v {
			n++
		}
	}
	for _, c := range r.Cases {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// score says it all in one line.
func (r *Report) score() string {
	if len(r.Questions) == 0 && len(r.Cases) == 0 {
		return "nothing to judge"
	}
	leaked, failed, held := r.Count(Leaked), r.Count(Failed), r.Count(Held)
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{
		{leaked, "leaked"}, {failed, "failed"}, {r.Count(Inconclusive), "inconclusive"}, {r.Count(ByDesign), "allowed by design"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	text := fmt.Sprintf("%d of %d held", held, held+leaked+failed+r.Count(Inconclusive))
	return text + cmp.Or(strings.Join(append([]string{""}, parts...), ", "), "")
}
