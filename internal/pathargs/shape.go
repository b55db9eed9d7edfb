package pathargs

import (
	"encoding/json"
	"strings"
)

// maxShaped is the longest string, in bytes, that counts as a path by its shape.
const maxShaped = 4096

// shaped reports whether a string has the shape of a path: one line, not too long, and a beginning that paths have, or a
// ".." element and no blank.
func shaped(s string) bool {
	if len(s) > maxShaped || !oneLine(s) {
		return false
	}
	switch {
	case strings.HasPrefix(s, "/"), strings.HasPrefix(s, `\`), strings.HasPrefix(s, "./"), strings.HasPrefix(s, "../"),
		beginsAtHome(s), isDrive(s), isFileURI(s):
		return true
	}
	return hasDotDot(s) && !strings.ContainsAny(s, " \t\u00a0")
}

func oneLine(s string) bool { return !strings.ContainsAny(s, "\n\r\u2028\u2029") }

func beginsAtHome(s string) bool {
	return s == "~" || strings.HasPrefix(s, "~/") || strings.HasPrefix(s, `~\`)
}

// isDrive reports whether s begins with a drive and a separator.
func isDrive(s string) bool {
	return len(s) >= 3 && s[1] == ':' && (s[2] == '\\' || s[2] == '/') && isLetter(s[0])
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func hasDotDot(s string) bool {
	for e := range strings.FieldsFuncSeq(s, func(c rune) bool { return c == '/' || c == '\\' }) {
		if e == ".." {
			return true
		}
	}
	return false
}

// climbs reports whether s has a ".." element, also one that is percent-encoded.
func climbs(s string) bool {
	for range 1 + maxRounds {
		if hasDotDot(s) {
			return true
		}
		s, _ = percentDecode(s)
	}
	return false
}

// looksLike reports whether a string that does not count is worth a line in the log.
func looksLike(s string) bool {
	return len(s) <= maxShaped && strings.ContainsAny(s, `/\`) && !strings.ContainsAny(s, " \t\r\n")
}

// fileURI returns what follows "file:", as a URL parser sees it: blanks at the ends, tabs and line ends anywhere do not
// count, nor does a scheme that only wraps another (view-source:file:///x).
func fileURI(s string) (rest string, ok bool) {
	s = strings.TrimFunc(s, func(c rune) bool { return c <= ' ' })
	for range 4 {
		scheme, after, ok := strings.Cut(s, ":")
		if !ok || len(scheme) > 64 {
			return "", false
		}
		switch scheme = inURL.Replace(scheme); {
		case !isScheme(scheme):
			return "", false
		case strings.EqualFold(scheme, "file"):
			return inURL.Replace(after), true
		}
		s = after
	}
	return "", false
}

// inURL takes out what a URL parser does not see.
var inURL = strings.NewReplacer("\t", "", "\n", "", "\r", "")

func isFileURI(s string) bool {
	_, ok := fileURI(s)
	return ok
}

// isAddress reports whether s is a URI of a scheme whose paths are not of this machine: scheme://, or data:. One letter is
// a drive.
func isAddress(s string) bool {
	s = strings.TrimSpace(s)
	scheme, after, ok := strings.Cut(s, ":")
	if !ok || len(scheme) < 2 || !isScheme(scheme) || isFileURI(s) {
		return false
	}
	return strings.HasPrefix(after, "//") || strings.EqualFold(scheme, "data")
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && (i == 0 || !('0' <= c && c <= '9') && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

func valid(s string) bool { return len(s) <= 1<<20 && json.Valid([]byte(s)) }
