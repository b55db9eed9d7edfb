package clientconf

import (
	"strings"

	"github.com/rootbound/rootbound/internal/splice"
)

var crushLegacy = Format{Grammar: JSON, Containers: in("mcp"), Entry: plain}

var crush = Client{
	ID: "crush", Name: "Crush", ReadOnly: "its crushrc is a program, and is not edited",
	Variables:  []Syntax{Dollar, Braces, BracesDefault, Substitution},
	Precedence: "the nearest file; crushrc before crush.json",
	Roots: Roots{Sends: Empty, Announces: Yes, Fact: Fact{
		Text: "it declares them and always answers with an empty list", Source: "its source", Date: "2026-08-21",
	}},
	Approval: Fact{Text: "it asks, unless a rule of permissions allows the tool; annotations do not count", Source: "its source", Date: "2026-08-21"},
	Restart:  "start Crush again",
	Places: []Place{
		{Scope: Project, Up: true, Paths: []string{"{project}/.crushrc", "{project}/crushrc"}, Format: Format{Grammar: Shell}},
		{Scope: User, Paths: []string{"{home}/.config/crush/crushrc"}, Format: Format{Grammar: Shell}},
		{Scope: Project, Role: Legacy, Up: true, Paths: []string{"{project}/.crush.json", "{project}/crush.json"}, Format: crushLegacy},
		{Scope: User, Role: Legacy, First: true, Paths: []string{"{CRUSH_GLOBAL_CONFIG}/crush.json", "{config}/crush/crush.json"}, Format: crushLegacy},
	},
}

// shell takes the servers out of plain lines "mcp add NAME --command C --args A …" of a script. Nothing is executed and
// nothing is filled in: a word with a $ in it stays as it is written.
func (f *File) shell(text string) {
	for words := range commandLines(text) {
		if len(words) < 3 || words[0].Text != "mcp" || words[1].Text != "add" {
			continue
		}
		s := &Server{File: f, Name: words[2].Text, Pos: words[2].Pos, Scope: f.Place.Scope, Project: f.Project}
		s.Entry = &splice.Value{Kind: splice.ObjectKind, Pos: words[0].Pos}
		for rest := words[3:]; len(rest) > 1; {
			option, value := rest[0], rest[1]
			rest = rest[2:]
			switch option.Text {
			case "--command":
				s.Command = value
			case "--args":
				s.Args = append(s.Args, value)
			case "--type":
				s.Type = value
			case "--url":
				s.URL = value
			case "--env", "--header":
				if len(rest) == 0 {
					break
				}
				v := Variable{Name: value.Text, Pos: value.Pos, Value: hide(rest[0].Text), At: rest[0].Pos}
				rest = rest[1:]
				if option.Text == "--env" {
					s.Env = append(s.Env, v)
				} else {
					s.Headers = append(s.Headers, v)
				}
				continue
			}
			if option.Text != "--header" && option.Text != "--env" {
				s.Entry.Members = append(s.Entry.Members, splice.Member{
					Name: strings.TrimLeft(option.Text, "-"), Value: &splice.Value{Kind: splice.StringKind, Text: value.Text, Pos: value.Pos}, Pos: option.Pos,
				})
			}
		}
		f.Servers = append(f.Servers, s)
	}
}

// commandLines cuts a script into lines and words, as far as quotes, backslashes and comments go.
func commandLines(text string) func(yield func([]Text) bool) {
	return func(yield func([]Text) bool) {
		var words []Text
		var word strings.Builder
		started := false
		at, pos := splice.Pos{}, splice.Pos{Line: 1, Column: 1}
		quote, depth := rune(0), 0 // depth is that of $( )
		end := func() {
			if started {
				words = append(words, Text{word.String(), at})
			}
			word.Reset()
			started = false
		}
		add := func(r rune) {
			if !started {
				started, at = true, pos
			}
			word.WriteRune(r)
		}
		step := func(r rune) {
			pos.Column++
			if r == '\n' {
				pos.Line++
				pos.Column = 1
			}
		}
		runes := []rune(text)
		for i := 0; i < len(runes); i++ {
			r := runes[i]
			next := rune(0)
			if i+1 < len(runes) {
				next = runes[i+1]
			}
			switch {
			case quote == '\'' && r != '\'':
				add(r)
			case r == '\\' && next == '\n':
				step(r)
				i++
				r = next
			case r == '\\' && next != 0:
				if quote == '"' && !strings.ContainsRune("\"\\$`", next) {
					add(r)
				}
				step(r)
				i++
				r = next
				add(r)
			case r == '$' && next == '(':
				depth++
				add(r)
			case depth > 0:
				if r == ')' {
					depth--
				}
				add(r)
			case quote != 0 && r == quote:
				quote = 0
			case quote != 0:
				add(r)
			case r == '\'' || r == '"':
				quote = r
				if !started {
					started, at = true, pos
				}
			case r == '#' && !started:
				for i+1 < len(runes) && runes[i+1] != '\n' {
					i++
					step(runes[i])
				}
			case r == '\n' || r == ';':
				end()
				if len(words) > 0 && !yield(words) {
					return
				}
				words = nil
			case r == ' ' || r == '\t' || r == '\r':
				end()
			default:
				add(r)
			}
			step(r)
		}
		end()
		if len(words) > 0 {
			yield(words)
		}
	}
}
