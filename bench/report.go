package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report is a whole run.
type report struct {
	Machine string     `json:"machine"`
	Commit  string     `json:"commit"`
	Load    string     `json:"load"` // how much ran beside it at the start
	Cases   []measured `json:"cases"`
}

// measured is a case with its results.
type measured struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Results []result `json:"results"`
}

// result is one number.
type result struct {
	Name string `json:"name"`
	// Value is the median of the rounds; the middle half of them is from Low to High.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Unit is what the numbers count; "" for a ratio.
	Unit string `json:"unit,omitempty"`
	// Wide is set when the rounds differ so much that Value says little.
	Wide bool `json:"wide,omitempty"`
	// Budget is the most that Value may be; nil when nothing is promised.
	Budget *float64 `json:"budget,omitempty"`
	// Missed is set when it is more, or no number.
	Missed bool `json:"missed,omitempty"`
}

// within returns r with a budget.
func (r result) within(most float64) result {
	r.Budget, r.Missed = &most, !(r.Value <= most)
	return r
}

// summary is the result of the rounds' values.
func summary(name, unit string, values []float64) result {
	r := result{Name: name, Unit: unit, Value: quantile(values, 0.5), Low: quantile(values, 0.25), High: quantile(values, 0.75)}
	r.Wide = r.High-r.Low > 0.3*r.Value
	return r
}

// ratio is the result of a divided by b, round by round, so that what slowed both does not count.
func ratio(name string, a, b []float64) result {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = a[i] / b[i]
	}
	return summary(name, "", values)
}

// quantile returns the value below which a share q of the values is, between two of them where it falls there.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 >= len(s) {
		return s[low]
	}
	return s[low] + (s[low+1]-s[low])*(at-float64(low))
}

func (r *report) missed() (n int) {
	for _, c := range r.Cases {
		for _, v := range c.Results {
			if v.Missed {
				n++
			}
		}
	}
	return n
}

func (r *report) head(w io.Writer) {
	fmt.Fprintf(w, "%s; commit %s; load %s\n", r.Machine, r.Commit, r.Load)
}

func (r *report) foot(w io.Writer) {
	isWide := func(v result) bool { return v.Wide }
	if slices.ContainsFunc(r.Cases, func(c measured) bool { return slices.ContainsFunc(c.Results, isWide) }) {
		fmt.Fprintf(w, "\n~ the rounds differ much: something else ran, or it is that uneven (load now %s)\n", load())
	}
	if n := r.missed(); n > 0 {
		fmt.Fprintf(w, "\n%d missed\n", n)
	}
}

func (m measured) table(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s\n", m.Name, m.Title)
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range m.Results {
		spread := number(r.Low) + "–" + number(r.High)
		if r.Low == r.High {
			spread = ""
		}
		if r.Wide {
			spread += " ~"
		}
		budget, mark := "", ""
		if r.Budget != nil {
			budget, mark = strings.TrimSpace("≤ "+number(*r.Budget)+" "+r.Unit), "✔"
			if r.Missed {
				mark = "✘"
			}
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", r.Name, strings.TrimSpace(number(r.Value)+" "+r.Unit), spread, budget, mark)
	}
	t.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// number writes three digits, and all before the point.
func number(v float64) string {
	if a := math.Abs(v); a >= 100 || a == math.Trunc(a) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

// commit is what is measured, "unknown" outside of a checkout.
func commit(repo string) string {
	out, err := exec.Command("git", "-C", repo, "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
