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

// TestFolded: on a terminal nothing is cut off, and what does not fit in a line is set in below it.
func TestFolded(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"it fits", "21:20:33  deny\n", "21:20:33  deny\n"},
		{"behind a blank", "21:20:33  deny  read /etc/passwd [a53a0b]\n", "21:20:33  deny  read\n    /etc/passwd\n    [a53a0b]\n"},
		{"before a blank", "21:20:33  deny  writes what\n", "21:20:33  deny\n    writes what\n"},
		{"at a blank", "21:20:33  deny  write what is\n", "21:20:33  deny  write\n    what is\n"},
		{"between columns", "fs                                   /srv/docs\n", "fs\n    /srv/docs\n"},
		{"behind columns", "                                     /srv/docs\n", "    /srv/docs\n"},
		{"within a word", "/a/path/that/is/long/and/has/no/blank\n", "/a/path/that/is/long/\n    and/has/no/blank\n"},
		{"a colour has no width", "\x1b[31mdeny\x1b[0m  read /etc/passwd \x1b[2m[a53a0b]\x1b[0m\n", "\x1b[31mdeny\x1b[0m  read\n    /etc/passwd\n    \x1b[2m[a53a0b]\x1b[0m\n"},
		{"wide characters", "世界时钟世界时钟世界时钟\n", "世界时钟世界时钟世界\n    时钟\n"},
		{"several lines", "a\n\nb", "a\n\nb"},
	} {
		var b strings.Builder
		n, err := folded{&b, 21, 4}.Write([]byte(tt.text))
		if err != nil || n != len(tt.text) {
			t.Errorf("%s: %d bytes were written, %v", tt.name, n, err)
		}
		if got := b.String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
