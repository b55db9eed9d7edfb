package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// Example returns a file that runs as it is printed: our own filesystem server in dirs, which are absolute. TOML is in our
// own form, JSON in the form of a client's file, which is the one that people copy around. Program is how rootbound is
// found, by its name or its path.
func Example(format splice.Format, program string, dirs []string) []byte {
	names := map[string]bool{}
	var list []*splice.Value
	for _, dir := range dirs {
		where := splice.Member{Name: "path", Value: splice.String(dir)}
		if format != splice.TOML {
			where = splice.Member{Name: "uri", Value: splice.String(roots.FileURI(dir))}
		}
		list = append(list, splice.Object(where, splice.Member{Name: "name", Value: splice.String(freeName(dir, names))}))
	}
	command := []splice.Member{
		{Name: "command", Value: splice.String(program)},
		{Name: "args", Value: splice.Strings("fs", "{roots}")},
	}
	server := splice.Path{"server", "files"}
	text := exampleTOML
	if format != splice.TOML {
		server, text = splice.Path{"mcpServers", "files"}, "{\n  \"mcpServers\": {}\n}\n"
	}
	doc, err := splice.Parse([]byte(text), format)
	insert := func(p splice.Path, v *splice.Value) {
		if err == nil {
			doc, err = doc.Insert(p, v)
		}
	}
	if format == splice.TOML {
		for _, m := range command {
			insert(append(server, m.Name), m.Value)
		}
		insert(append(server, "roots"), splice.Array(list...))
	} else {
		changed := splice.Object(splice.Member{Name: "roots", Value: splice.Object(splice.Member{Name: "listChanged", Value: splice.Bool(true)})})
		insert(server, splice.Object(append(command,
			splice.Member{Name: "roots", Value: splice.Array(list...)},
			splice.Member{Name: "capabilities", Value: changed})...))
	}
	if err != nil {
		panic("bug: " + err.Error())
	}
	return doc.Bytes()
}

const exampleTOML = `# Rootbound: which directories an MCP server is held to. Start it with
#
#     rootbound run --config THIS-FILE
#
# Every key is described in docs/configuration.md; rootbound config show --origin says what holds.

[server.files]
`

// freeName returns the last element of a directory as a name, made different from those that are taken.
func freeName(dir string, taken map[string]bool) string {
	base := filepath.Base(dir)
	if base == string(filepath.Separator) || base == "." || strings.ContainsAny(base, "{}") {
		base = "root"
	}
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[name] = true
	return name
}
