package policy

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
)

// CheckName says what is wrong with the name of an argument.
func CheckName(name string) error {
	switch {
	case strings.Trim(name, "/") == "":
		return errors.New("an argument's name is missing")
	case strings.HasPrefix(name, "/") && slices.Contains(strings.Split(name[1:], "/"), ""):
		return errors.New("there is nothing between two slashes")
	case !strings.HasPrefix(name, "/") && strings.Contains(name, "/"):
		return errors.New("a name with slashes begins with one")
	}
	return nil
}

// found are the values that the name of an argument is for.
type found struct {
	list   []occurrence
	deeper bool // not all was looked at
}

// find looks for an argument, also in other letters: some servers read them so.
func find(args []byte, name string) found {
	var f finder
	if strings.HasPrefix(name, "/") {
		f.place = strings.Split(name[1:], "/")
		for i, e := range f.place {
			f.place[i] = wire.PointerName(e)
		}
	} else {
		f.name, f.folded = wire.PointerName(name), fold(wire.PointerName(name))
	}
	f.walk(args, nil, true)
	return f.found
}

type finder struct {
	found
	name, folded string   // of a member at any depth
	place        []string // or of one place
}

func (f *finder) walk(v []byte, at []string, exact bool) {
	switch {
	case len(v) == 0:
		return
	case len(at) > maxDepth:
		f.deeper = true
		return
	}
	switch v[0] {
	case '{':
		for name, value := range wire.Members(v) {
			f.member(name, value, at, exact, false)
		}
	case '[':
		i := 0
		for value := range wire.Items(v) {
			f.member(strconv.Itoa(i), value, at, exact, true)
			i++
		}
	}
}

func (f *finder) member(name string, value []byte, at []string, exact, element bool) {
	at = append(at, name)
	if f.place == nil {
		if !element && (name == f.name || fold(name) == f.folded) {
			f.add(at, value, name == f.name)
		}
		f.walk(value, at, exact)
		return
	}
	switch want := f.place[len(at)-1]; {
	case want == "*" || want == name:
	case fold(want) == fold(name):
		exact = false
	default:
		return
	}
	if len(at) == len(f.place) {
		f.add(at, value, exact)
		return
	}
	f.walk(value, at, exact)
}

func (f *finder) add(at []string, value []byte, exact bool) {
	f.list = append(f.list, occurrence{at: wire.Pointer(at...), value: value, exact: exact})
}

// fold is for comparing names as a decoder does that ignores case.
func fold(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 || 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(strings.ToUpper(s))
		}
	}
	return s
}
