package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/splice"
)

// ofProblem says which kind of finding a fault of a text is.
var ofProblem = map[clientconf.Kind]string{
	clientconf.BOM:           "SYN-BOM",
	clientconf.Comment:       "SYN-COMMENT",
	clientconf.TrailingComma: "SYN-TRAILING-COMMA",
	clientconf.Escape:        "SYN-ESCAPE",
	clientconf.Twice:         "SYN-DUPKEY",
	clientconf.Malformed:     "SYN-INVALID",
	clientconf.Unreadable:    "SYN-INVALID",
	clientconf.CaseTwin:      "KEY-FOREIGN",
	clientconf.Control:       "PATH-CONTROL-CHAR",
	clientconf.Shape:         "ENTRY-INVALID",
}

// grammar judges the text of a file.
func (x *examiner) grammar(f *clientconf.File) {
	comments := 0
	for _, p := range f.Problems[:min(len(f.Problems), most)] {
		id := ofProblem[p.Kind]
		var options []option
		fix := ""
		switch p.Kind {
		case clientconf.BOM:
			if !p.Fatal {
				continue // this client bears it
			}
			options = append(options, mending(cutBOM))
		case clientconf.Comment:
			if comments++; comments > 1 {
				continue // one tells it
			}
		case clientconf.TrailingComma:
			options = append(options, mending(cutComma(p.Pos)))
		case clientconf.Escape:
			options = append(options, mending(doubleBackslashes(p.Pos)))
		case clientconf.CaseTwin:
			if strings.ContainsAny(nameAt(f.Tree, p.Pos), `/\\`) {
				continue // a path, and no word of the client
			}
			fix = "Write the key in the case that the client reads, or take one of the two out."
		case clientconf.Shape:
			fix = "Write the entry as a table with a command or an address."
		}
		if !p.Fatal {
			options = append(options, because("The client reads the rest of the file as if it were not there."))
		}
		if p.Kind == clientconf.Control {
			options = append(options[:0], mending(doubleBackslashes(p.Pos)))
		}
		x.find(id, f, p.Pos, sentenceOf(p.Msg), fix, options...)
	}
	if f.Tree == nil {
		return
	}
	x.scalars(f)
}

// sentenceOf makes a sentence of what another room says of a text.
func sentenceOf(msg string) string {
	if msg == "" {
		return "It is not written as the client reads it."
	}
	first := msg[:1]
	if 'a' <= msg[0] && msg[0] <= 'z' {
		first = string(msg[0] - 'a' + 'A')
	}
	out := first + msg[1:]
	if last := out[len(out)-1]; last != '.' && last != '!' && last != '?' {
		out += "."
	}
	return out
}

// nameAt returns the name that stands at a place.
func nameAt(v *splice.Value, p splice.Pos) string {
	if v == nil {
		return ""
	}
	for _, m := range v.Members {
		if m.Pos == p {
			return m.Name
		}
		if name := nameAt(m.Value, p); name != "" {
			return name
		}
	}
	for _, item := range v.Items {
		if name := nameAt(item, p); name != "" {
			return name
		}
	}
	return ""
}

// scalars judges values that YAML reads as something else than they look like.
func (x *examiner) scalars(f *clientconf.File) {
	if f.Place.Format.Grammar != clientconf.YAML {
		return
	}
	for _, s := range f.Servers {
		if s.Entry == nil {
			continue
		}
		for _, v := range oddities(s.Entry) {
			x.add(Finding{
				ID: "YAML-SCALAR", Client: f.Client.ID, Server: s.Name, File: f.Path, Line: v.at.Line, Column: v.at.Column,
				What: fmt.Sprintf("In YAML %s is %s.", v.written, v.is), Fix: v.fix,
			}, nil)
		}
	}
}

type oddity struct {
	written, is, fix string
	at               splice.Pos
}

var leadingZero = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-+]?0[0-9]+$`)
})

// oddities finds them in an entry.
func oddities(entry *splice.Value) []oddity {
	var list []oddity
	var look func(v *splice.Value)
	aliased := false
	look = func(v *splice.Value) {
		if v.Aliased() {
			aliased = true
			return
		}
		for _, m := range v.Members {
			look(m.Value)
		}
		for _, item := range v.Items {
			look(item)
		}
		if !v.Unquoted() {
			return
		}
		switch {
		case v.Kind == splice.NullKind && v.Text == "~":
			list = append(list, oddity{"a bare ~", "nothing at all, and no home directory", "Write the whole path, in quotes.", v.Pos})
		case v.Kind == splice.StringKind && slices.Contains([]string{"yes", "no", "on", "off", "y", "n"}, strings.ToLower(v.Text)):
			list = append(list, oddity{word(v.Text), "a text by version 1.2 and true or false by version 1.1", "Write true or false, or put the text in quotes.", v.Pos})
		case v.Kind == splice.NumberKind && leadingZero().MatchString(v.Text):
			list = append(list, oddity{"a number that begins with 0, " + v.Text + ",", "octal by version 1.1", "Write it without the 0.", v.Pos})
		}
	}
	look(entry)
	if aliased {
		list = append(list, oddity{"an anchor or a merge key, as in this entry,", "taken from elsewhere in the file", "Write the values out: programs that write the file anew lose the anchor.", entry.Pos})
	}
	return list
}
