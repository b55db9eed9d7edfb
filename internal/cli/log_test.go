package cli

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	zone := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 11, 30, 9, 30, 0, 0, zone)
	at := func(month time.Month, day, hour, minute, second int) time.Time {
		return time.Date(2026, month, day, hour, minute, second, 0, zone)
	}
	for s, want := range map[string]time.Time{
		"":                          {},
		"0s":                        now,
		"30m":                       at(11, 30, 9, 0, 0),
		"2h":                        at(11, 30, 7, 30, 0),
		"1h30m":                     at(11, 30, 8, 0, 0),
		"3d":                        at(11, 27, 9, 30, 0),
		"0.5d":                      at(11, 29, 21, 30, 0),
		"1d12h":                     at(11, 28, 21, 30, 0),
		"36500d":                    now.Add(-36500 * 24 * time.Hour),
		"09:15":                     at(11, 30, 9, 15, 0),
		"9:15":                      at(11, 30, 9, 15, 0),
		"09:15:30":                  at(11, 30, 9, 15, 30),
		"23:00":                     at(11, 29, 23, 0, 0), // the last one there was
		"2026-11-29":                at(11, 29, 0, 0, 0),
		"2026-11-29T12:00":          at(11, 29, 12, 0, 0),
		"2026-11-29 12:00":          at(11, 29, 12, 0, 0),
		"2026-11-29 12:00:05":       at(11, 29, 12, 0, 5),
		"2026-11-29T12:00:05.5":     at(11, 29, 12, 0, 5).Add(500 * time.Millisecond),
		"2026-11-29T12:00Z":         at(11, 29, 14, 0, 0),
		"2026-11-29T12:00:05Z":      at(11, 29, 14, 0, 5),
		"2026-11-29 12:00:05+01:00": at(11, 29, 13, 0, 5),
	} {
		got, err := parseSince(s, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"yesterday", "2", "-2h", "2 h", "2x", "d", "-1d", "NaNd", "Infd", "36501d", "36500d2000000h", "1d-1h", "9999999h", "24:00", "2026-13-01", "2026-11-29T", "11/29/2026", " ",
	} {
		got, err := parseSince(s, now)
		var hint hintError
		if !errors.As(err, new(usageError)) || !errors.As(err, &hint) || !strings.Contains(hint.hint, sinceForms) {
			t.Errorf("%q is %v, %v; want a usage error with the forms", s, got, err)
		}
	}
}
