package logindex

import (
	"context"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

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
	type call struct {
		at      int64 // microseconds
		kind    int64
		verdict int64
		ms      float32
	}
	var calls []call
	var words map[int64]string
	q.Before = 0
	err := x.read(ctx, func(c *sqlite3.Conn) (err error) {
		calls = calls[:0]
		var files map[int64]string
		if words, files, err = names(c); err != nil {
			return err
		}
		how := scanning{kinds: []calllog.Kind{calllog.Call, calllog.Asked, calllog.Note}, files: files, up: true}
		return x.scan(c, q, how, func(r *row) bool {
			k := call{int64(r.key) >> keyBits, r.kind, r.verdict, -1}
			if words[r.outcome] != "" {
				k.ms = float32(r.ms)
			}
			calls = append(calls, k)
			return true
		})
	})
	if err != nil || len(calls) == 0 {
		return Chart{}, err
	}
	begin, end := calls[0].at, calls[len(calls)-1].at
	step := steps[len(steps)-1]
	for _, s := range steps {
		if end/s.Microseconds()-begin/s.Microseconds() < int64(n) {
			step = s
			break
		}
	}
	for end/step.Microseconds()-begin/step.Microseconds() >= int64(n) {
		step *= 2
	}
	unit := step.Microseconds()
	chart := Chart{Step: step}
	for at := begin / unit; at <= end/unit; at++ {
		chart.Slots = append(chart.Slots, Slot{Begin: time.UnixMicro(at * unit)})
	}
	var took []float32
	for i, c := range calls {
		s := &chart.Slots[c.at/unit-begin/unit]
		verdict := calllog.Verdict(words[c.verdict])
		switch kind := calllog.Kind(words[c.kind]); {
		case kind == calllog.Asked:
			s.Asked++
		case verdict == calllog.Deny:
			s.Denied++
		case kind == calllog.Note:
		case verdict == calllog.Allow:
			s.Allowed++
		default:
			s.Other++
		}
		if c.ms >= 0 && calllog.Kind(words[c.kind]) == calllog.Call {
			took = append(took, c.ms)
		}
		if i == len(calls)-1 || calls[i+1].at/unit != c.at/unit {
			slices.Sort(took)
			s.Ended = len(took)
			s.P50, s.P90, s.P99 = percentile(took, 50), percentile(took, 90), percentile(took, 99)
			took = took[:0]
		}
	}
	return chart, nil
}

// percentile is the smallest of the sorted values that is not less than so many of a hundred; 0 when there are none.
func percentile(sorted []float32, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[(len(sorted)*p+99)/100-1])
}
