package calllog

import (
	"errors"
	"strings"
)

// DefaultDir returns the directory of the logs in the user's state directory: $XDG_STATE_HOME/rootbound/log (by default
// ~/.local/state/rootbound/log), ~/Library/Application Support/rootbound/log on macOS, %LOCALAPPDATA%\rootbound\log on
// Windows. Goos is a value of runtime.GOOS, env looks up a variable. Nothing is created.
func DefaultDir(env func(string) string, goos string) (string, error) {
	if goos == "windows" {
		if dir := env("LOCALAPPDATA"); dir != "" {
			return strings.TrimRight(dir, `\`) + `\rootbound\log`, nil
		}
		return "", errors.New("finding the state directory: LOCALAPPDATA is not set")
	}
	state := env("XDG_STATE_HOME")
	if goos == "darwin" || !strings.HasPrefix(state, "/") { // a relative one is to be ignored
		home := env("HOME")
		if home == "" {
			return "", errors.New("finding the state directory: HOME is not set")
		}
		state = home + "/.local/state"
		if goos == "darwin" {
			state = home + "/Library/Application Support"
		}
	}
	return strings.TrimRight(state, "/") + "/rootbound/log", nil
}
