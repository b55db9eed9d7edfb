package calllog

import (
	"testing"
	"time"
)

// Short words are written as they are: that is what would become of them.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "call", "tools/call", "c7f3a2", "-----BEGIN", "x.-----BEGIN", "token=x", "Bearer x", "/etc/p", "../x", "a://b:c@d", "\x00", "é", "ghp_0123456789"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var e encoder
		e.quote(s)
		if want := appendRedacted(nil, []byte(s), maxText); string(e.buf) != string(want) {
			t.Errorf("%q is written as %s, want %s", s, e.buf, want)
		}
	})
}

// The second is kept from record to record, whichever way the clock goes.
func TestTimes(t *testing.T) {
	var e encoder
	zone := time.FixedZone("", 5*3600+1800)
	for _, now := range []time.Time{
		time.Date(2026, 11, 30, 23, 59, 59, 999_999_999, time.UTC), time.Date(2026, 11, 30, 23, 59, 59, 1_000, zone), time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 30, 23, 59, 59, 90_000, time.UTC), time.Unix(0, 123_456_000), time.Unix(-1, 999_999_000), {},
	} {
		e.buf = e.buf[:0]
		e.time(now)
		if got, want := string(e.buf), now.UTC().Format(`,"time":"`+timeLayout+`"`); got != want {
			t.Errorf("%v is written as %s, want %s", now, got, want)
		}
	}
}
