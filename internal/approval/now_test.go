package approval

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A minute is counted in parts, which are forgotten one after the other, and the whole is not.
func TestCountsOfAMinute(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 3, 0, time.UTC)
	b := NewBoard(func() time.Time { return now })
	want := func(minute, total Counts, next time.Duration) {
		t.Helper()
		got, at := b.look()
		if diff := cmp.Diff([]Counts{minute, total}, []Counts{got.Minute, got.Total}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if d := at.Sub(now); d != next && !(next == 0 && at.IsZero()) {
			t.Errorf("it changes by itself in %v, want %v", d, next)
		}
	}
	want(Counts{}, Counts{}, 0)
	b.Count(now, Counts{Allowed: 1}, nil)
	b.Count(now, Counts{Denied: 1}, &Refusal{Call: "c1"})
	want(Counts{Allowed: 1, Denied: 1}, Counts{Allowed: 1, Denied: 1}, 57*time.Second)
	now = now.Add(30 * time.Second)
	b.Count(now, Counts{Approved: 1}, nil)
	want(Counts{Allowed: 1, Approved: 1, Denied: 1}, Counts{Allowed: 1, Approved: 1, Denied: 1}, 27*time.Second)
	now = now.Add(27 * time.Second)
	want(Counts{Approved: 1}, Counts{Allowed: 1, Approved: 1, Denied: 1}, 30*time.Second)
	now = now.Add(time.Hour)
	want(Counts{}, Counts{Allowed: 1, Approved: 1, Denied: 1}, 0)
	if n, _ := b.look(); n.Refused == nil || n.Refused.Call != "c1" {
		t.Errorf("the last refusal is %+v", n.Refused)
	}
	now = now.Add(-2 * time.Hour) // the clock was set back
	b.Count(now, Counts{Allowed: 1}, nil)
	want(Counts{Allowed: 1}, Counts{Allowed: 2, Approved: 1, Denied: 1}, time.Minute)
	now = time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC) // or never set
	b.Count(now, Counts{Allowed: 1}, nil)
	want(Counts{Allowed: 1}, Counts{Allowed: 3, Approved: 1, Denied: 1}, time.Minute)

	var none *Board
	none.Count(now, Counts{Allowed: 1}, nil)
	none.Changed()
	if n, next := none.look(); n.Total.Sum() != 0 || !next.IsZero() {
		t.Errorf("%+v, %v", n, next)
	}
}
