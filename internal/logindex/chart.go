package logindex

import (
	"context"
	"slices"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
)

// Chart is how many calls there were over time, and how long they took.
type Chart struct {
	// Step is how long a slot is, in whole units of time.
	Step  time.Duration
	Slots []Slot
}

// Slot is a part of the time.
type Slot struct {
	Begin time.Time
	// Allowed and Denied are the calls by what was decided, Other those about which nothing was to be decided. Asked is how often
	// a person was asked.
	Allowed, Denied, Other, Asked int
	// Ended is how many of the calls have ended; these are the percentiles of how long they took, in milliseconds.
	Ended         int
	P50, P90, P99 float64
}

// steps are the lengths that a slot may have.
var steps = [...]time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
	10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// maxSlots is how many slots a chart has at most.
const maxSlots = 500

// Chart counts the calls that q selects, in at most n slots of the time that they took. Query.Before and Query.Limit do not count.
func (x *Index) Chart(ctx context.Context, q Query, n int) (Chart, error) {
	n = min(max(n, 1), maxSlots)
	q.Before = 0
	var chart Chart
	err := x.read(ctx, func(c *database) error {
		chart = Chart{}
		words, files, err := names(c)
		if err != nil {
			return err
		}
		scan := func(up bool, visit func(at int64, what class, r *row) bool) error {
			how := scanning{kinds: []calllog.Kind{calllog.Call, calllog.Asked, calllog.Note}, files: files, up: up}
			return x.scan(c, q, how, func(r *row) bool {
				what := classOf(calllog.Kind(words[r.kind]), calllog.Verdict(words[r.verdict]))
				return what == none || visit(int64(r.key)>>keyBits, what, r)
			})
		}
		// From the first to the last; then the calls come slot by slot, and those of one are all that is held at once.
		begin, end := int64(-1), int64(-1)
		err = scan(true, func(at int64, _ class, _ *row) bool { begin = at; return false })
		if err != nil || begin < 0 {
			return err
		}
		if err := scan(false, func(at int64, _ class, _ *row) bool { end = at; return false }); err != nil {
			return err
		}
		chart.Step = stepFor(begin, end, n)
		unit := chart.Step.Microseconds()
		for at := begin / unit; at <= end/unit; at++ {
			chart.Slots = append(chart.Slots, Slot{Begin: time.UnixMicro(at * unit)})
		}
		var took []float32
		var now *Slot
		ended := func() {
			slices.Sort(took)
			now.Ended = len(took)
			now.P50, now.P90, now.P99 = percentile(took, 50), percentile(took, 90), percentile(took, 99)
			took = took[:0]
		}
		err = scan(true, func(at int64, what class, r *row) bool {
			if s := &chart.Slots[at/unit-begin/unit]; s != now {
				if now != nil {
					ended()
				}
				now = s
			}
			switch what {
			case asked:
				now.Asked++
			case denied:
				now.Denied++
			case allowed:
				now.Allowed++
			default:
				now.Other++
			}
			if words[r.outcome] != "" && calllog.Kind(words[r.kind]) == calllog.Call {
				took = append(took, float32(r.ms))
			}
			return true
		})
		if now != nil {
			ended()
		}
		return err
	})
	return chart, err
}

// stepFor is the shortest step by which n slots reach from begin to end, in microseconds.
func stepFor(begin, end int64, n int) time.Duration {
	fits := func(s time.Duration) bool { return end/s.Microseconds()-begin/s.Microseconds() < int64(n) }
	for _, s := range steps {
		if fits(s) {
			return s
		}
	}
	step := steps[len(steps)-1]
	for !fits(step) {
		step *= 2
	}
	return step
}

// class is as what a record counts.
type class uint8

const (
	none class = iota
	asked
	denied
	allowed
	other
)

func classOf(kind calllog.Kind, verdict calllog.Verdict) class {
	switch {
	case kind == calllog.Asked:
		return asked
	case verdict == calllog.Deny: // also what the kernel refused
		return denied
	case kind == calllog.Note:
		return none
	case verdict == calllog.Allow:
		return allowed
	}
	return other
}

// percentile is the smallest of the sorted values that is not less than so many of a hundred; 0 when there are none.
func percentile(sorted []float32, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[(len(sorted)*p+99)/100-1])
}
