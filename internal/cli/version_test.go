package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestOrigin(t *testing.T) {
	commit := []debug.BuildSetting{
		{Key: "GOOS", Value: "linux"},
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
		{Key: "vcs.time", Value: "2026-11-30T15:04:45Z"},
	}
	for _, tt := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, "of no known commit"},
		{append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"}),
			"commit 0123456789abcdef0123456789abcdef01234567 of 2026-11-30T15:04:45Z"},
		{append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"commit 0123456789abcdef0123456789abcdef01234567 of 2026-11-30T15:04:45Z, with changes that are in no commit"},
	} {
		if got := origin(tt.settings); got != tt.want {
			t.Errorf("origin(%v) = %q, want %q", tt.settings, got, tt.want)
		}
	}
}

// Where nobody has run a build, its version says so.
func TestUntested(t *testing.T) {
	for platform, want := range map[string]string{
		"linux/amd64":   "",
		"linux/arm64":   "On linux/arm64 ",
		"darwin/arm64":  "On macOS ",
		"windows/amd64": "On Windows ",
		"freebsd/amd64": "On Freebsd ",
	} {
		goos, goarch, _ := strings.Cut(platform, "/")
		got := untested(goos, goarch)
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) || got != "" && !strings.Contains(got, "we never ran it") {
			t.Errorf("untested(%s) = %q, want it to begin with %q", platform, got, want)
		}
	}
}
