package launch

import (
	"slices"
	"strings"
)

// passed are the environment variables that say how a program should behave and not who somebody is.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CI",
	"NODE_ENV", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV",
}

// Environment returns what a confined server gets of an environment: what says how to behave, and the variables that are
// named. Withheld are the names of the others.
func Environment(env []string, named []string) (kept, withheld []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || slices.Contains(named, name) {
			kept = append(kept, v)
		} else {
			withheld = append(withheld, name)
		}
	}
	slices.Sort(withheld)
	return kept, withheld
}
