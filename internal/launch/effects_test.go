package launch

import (
	"strings"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

// What a tool does is known of the very package, version and definition, and of nothing near it.
func TestEffect(t *testing.T) {
	reference, _ := Lookup(Identify(command("npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /a")))
	definition := func(tool string) string {
		list := strings.Fields(filesystemEffects.tools[tool].definitions)
		return list[len(list)-1] + strings.Repeat("0", 32)
	}
	for _, tt := range []struct {
		p                         Profile
		version, tool, definition string
		want                      roots.Access
		known                     bool
	}{
		{reference, "2026.8.31", "read_text_file", definition("read_text_file"), roots.Read, true},
		{reference, "v2026.8.31", "write_file", definition("write_file"), roots.Read | roots.Write, true},
		{reference, "2026.8.31", "move_file", definition("move_file"), roots.ReadWrite, true},
		{reference, "2026.9.1", "read_text_file", definition("read_text_file"), 0, false},
		{reference, "2026.8.30", "read_text_file", definition("read_text_file"), 0, false},
		{reference, "latest", "read_text_file", definition("read_text_file"), 0, false},
		{reference, "", "read_text_file", definition("read_text_file"), 0, false},
		{reference, "2026.8.31", "read_text_file", definition("write_file"), 0, false},
		{reference, "2026.8.31", "read_text_file", "", 0, false},
		{reference, "2026.8.31", "read_all", definition("read_text_file"), 0, false},
		{container, "2026.8.31", "read_text_file", definition("read_text_file"), 0, false},
		{Profile{}, "2026.8.31", "read_text_file", definition("read_text_file"), 0, false},
	} {
		got, known := tt.p.Effect(tt.version, tt.tool, tt.definition)
		if known != tt.known || known && got != tt.want {
			t.Errorf("%s %s %s %.8s: got %v, %v, want %v, %v", tt.p.Name, tt.version, tt.tool, tt.definition, got, known, tt.want, tt.known)
		}
	}
	for _, p := range profiles {
		if p.effects == nil {
			continue
		}
		if v := strings.Fields(p.effects.versions); !p.Covers(v[len(v)-1]) || p.read != v[len(v)-1] {
			t.Errorf("%s: the effects are of %s, and the newest version that was read is %s", p.Name, v[len(v)-1], p.read)
		}
		for name, e := range p.effects.tools {
			for _, d := range strings.Fields(e.definitions) {
				if len(d) != printed || strings.Trim(d, "0123456789abcdef") != "" {
					t.Errorf("%s: %q is no print of a definition of %s", p.Name, d, name)
				}
			}
			if e.access&roots.Read == 0 || e.definitions == "" {
				t.Errorf("%s: %s does nothing", p.Name, name)
			}
		}
	}
}
