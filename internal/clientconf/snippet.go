package clientconf

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Snippet is what the entry of s says, in the words of its file, when program and words are its command line. The rest of
// the entry stays.
func (s *Server) Snippet(program string, words []string) []string {
	e := s.form
	list := quoted(words)
	command, args := quoted([]string{program}), "["+list+"]"
	if e.Argv {
		command = "[" + command + ", " + list + "]"
	}
	switch g := s.File.Place.Format.Grammar; g {
	case Shell:
		line := "mcp add " + quoted([]string{s.Name}) + " --command " + command
		for _, w := range words {
			line += " --args " + quoted([]string{w})
		}
		return []string{line}
	case TOML, YAML:
		is := " = "
		if g == YAML {
			is = ": "
		}
		lines := []string{e.Command + is + command}
		if !e.Argv {
			lines = append(lines, e.Args+is+args)
		}
		return lines
	}
	lines := []string{`"` + e.Command + `": ` + command + ","}
	if !e.Argv {
		lines = append(lines, `"`+e.Args+`": `+args+",")
	}
	return lines
}

// quoted writes strings as JSON, TOML and YAML take them alike.
func quoted(list []string) string {
	var parts []string
	for _, s := range list {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			return ""
		}
		parts = append(parts, strings.TrimSpace(b.String()))
	}
	return strings.Join(parts, ", ")
}
