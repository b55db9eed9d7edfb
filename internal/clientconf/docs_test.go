package clientconf

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of clients into docs/clients.md")

const (
	tableBegins = "<!-- From internal/clientconf; go test ./internal/clientconf -update writes it. -->\n"
	tableEnds   = "<!-- end -->\n"
)

// docs/clients.md says of each client what the table says.
func TestDocumented(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "clients.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	was, after, ends := strings.Cut(rest, tableEnds)
	if !ok || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	is := table()
	if *update {
		if err := os.WriteFile(page, []byte(before+tableBegins+is+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("%s differs from the table; go test ./internal/clientconf -update writes it (-page +table):\n%s", page, diff)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("\n| client | name | files | sends roots | tells of changes |\n|---|---|---|---|---|\n")
	for _, c := range Clients() {
		files := "edited"
		if !c.Writable {
			files = "only read"
		}
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s | %s | %s |\n", c.Name, anchor(c.Name), c.ID, files, c.Roots.Sends, c.Roots.Announces)
	}
	for _, c := range Clients() {
		fmt.Fprintf(&b, "\n### %s\n\n", c.Name)
		if c.Ended != "" {
			fmt.Fprintf(&b, "Not maintained any more: %s.\n\n", c.Ended)
		}
		for _, p := range c.Places {
			fmt.Fprintf(&b, "- %s\n", place(p))
		}
		b.WriteString("\n")
		if c.Precedence != "" {
			fmt.Fprintf(&b, "What counts first: %s. ", c.Precedence)
		}
		var forms []string
		for _, v := range c.Variables {
			forms = append(forms, "`"+string(v)+"`")
		}
		switch {
		case len(forms) > 0:
			fmt.Fprintf(&b, "Variables: %s. ", strings.Join(forms, ", "))
		case c.Writable:
			b.WriteString("No variables are filled in. ")
		}
		if c.IgnoresCwd {
			b.WriteString("A working directory in an entry has no effect. ")
		}
		if c.StartsIn != "" {
			fmt.Fprintf(&b, "Servers of the user's file may be started in `%s`. ", c.StartsIn)
		}
		b.WriteString("\n\n")
		if c != &ccSwitch {
			fmt.Fprintf(&b, "- Roots: %s.\n", fact(c.Roots.Fact))
			fmt.Fprintf(&b, "- Approval: %s.\n", fact(c.Approval))
		}
		if c.Seen.Text != "" {
			fmt.Fprintf(&b, "- Seen: %s.\n", fact(c.Seen))
		}
		if !c.Writable {
			fmt.Fprintf(&b, "- Its files are only read: %s.\n", c.ReadOnly)
		}
		fmt.Fprintf(&b, "- After an edit: %s.\n", c.Restart)
	}
	b.WriteString("\n")
	return strings.ReplaceAll(b.String(), ". \n", ".\n")
}

func anchor(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(name), " ", "-"), "/", "")
}

func fact(f Fact) string {
	if f.Text == "" {
		return "not known"
	}
	return fmt.Sprintf("%s (%s; %s)", f.Text, f.Source, f.Date)
}

func place(p Place) string {
	var at []string
	for _, list := range []struct {
		os    string
		paths []string
	}{{"", p.Paths}, {" on Linux", p.Linux}, {" on macOS", p.Darwin}, {" on Windows", p.Windows}} {
		if len(list.paths) == 0 {
			continue
		}
		var paths []string
		for _, path := range list.paths {
			paths = append(paths, "`"+path+"`")
		}
		at = append(at, strings.Join(paths, ", ")+list.os)
	}
	what := ""
	switch p.Role {
	case Servers:
		what = "servers"
	case Legacy:
		what = "servers, deprecated"
	case Settings:
		what = "settings"
	case Unread:
		what = "not read by it"
	case Presence:
		what = "only that it is there"
	}
	text := fmt.Sprintf("**%s**: %s (%s", p.Scope, strings.Join(at, "; "), what)
	if p.Role != Presence {
		text += "; " + p.Format.Grammar.String()
	}
	if p.Role == Servers || p.Role == Legacy {
		var keys []string
		for _, c := range p.Format.Containers {
			keys = append(keys, "`"+strings.Join(c.Keys, " → ")+"`")
		}
		if len(keys) > 0 {
			text += ", " + strings.Join(keys, " and ")
		}
	}
	text += ")"
	if p.Note != "" {
		text += ": " + p.Note
	}
	if p.Locks {
		text += "; while it is written there is a directory `FILE.lock`, which is waited for and taken"
	}
	if p.Up {
		text += "; also in the directories above"
	}
	return text
}
