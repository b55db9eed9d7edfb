package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of docs/doctor.md")

const (
	tableBegin = "<!-- the table: go test ./internal/doctor -update writes it -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// docs/doctor.md has the table of what can be found.
func TestDocumented(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "doctor.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	was, after, ends := strings.Cut(rest, tableEnd)
	if !ok || !ends {
		t.Fatalf("%s has no place for the table", file)
	}
	var b strings.Builder
	b.WriteString("\n| id | severity | what it is | what comes of it | what to do |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range Kinds {
		fix := k.Fix
		if k.Safe {
			fix += " `rootbound doctor --fix` does, where it has one meaning."
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", k.ID, k.Severity, sentence(k.Means), k.Why, fix)
	}
	b.WriteString("\n")
	if *update {
		if err := os.WriteFile(file, []byte(before+tableBegin+b.String()+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(was, b.String()); diff != "" {
		t.Errorf("%s differs from the table; go test ./internal/doctor -update writes it (-page +table):\n%s", file, diff)
	}
}

// What is told of is in the table once, in sentences.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds {
		if seen[k.ID] {
			t.Errorf("%s is there twice", k.ID)
		}
		seen[k.ID] = true
		if rank(k.Severity) < 1 || !strings.HasSuffix(k.Why, ".") || !strings.HasSuffix(k.Fix, ".") || k.Means == "" || strings.HasSuffix(k.Means, ".") {
			t.Errorf("the row of %s is not as the others: %+v", k.ID, k)
		}
	}
	for _, c := range covered {
		kindOf(c.id)
		for _, id := range c.by {
			kindOf(id)
		}
	}
}
