package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// The help of every command is in testdata/help, so that a change of what users see is seen in review; -update writes it.
func TestHelp(t *testing.T) {
	want, err := filepath.Glob(filepath.Join("testdata", "help", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range commands((&app{}).root(nil)) {
		for _, flag := range []string{"--help", "--help-all"} {
			text, code := printed(append(slices.Clone(names), flag)...)
			switch {
			case flag == "--help-all" && code == exitUsage:
				continue // it has no more to show
			case code != exitDone:
				t.Errorf("%s %s ends with the code %d", strings.Join(names, " "), flag, code)
				continue
			}
			if n := len(regexp.MustCompile(`(?m)^Exit codes: `).FindAllString(text, -1)); n != 1 {
				t.Errorf("%s %s lists exit codes %d times, want once", strings.Join(names, " "), flag, n)
			}
			if len(names) > 1 && names[0] == "completion" {
				continue // the library's text
			}
			name := strings.Join(append([]string{"rootbound"}, names...), "-")
			if flag == "--help-all" {
				name += "-all"
			}
			file := filepath.Join("testdata", "help", name+".txt")
			want = slices.DeleteFunc(want, func(f string) bool { return f == file })
			golden(t, file, text)
		}
	}
	for _, file := range want {
		t.Errorf("%s is the help of no command", file)
	}
}

// commands returns the names that lead to each command.
func commands(cmd *cobra.Command) [][]string {
	list := [][]string{strings.Fields(cmd.CommandPath())[1:]}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			list = append(list, commands(c)...)
		}
	}
	return list
}

func printed(args ...string) (text string, code int) {
	var out, errs strings.Builder
	code = Main(args, strings.NewReader(""), &out, &errs)
	return out.String(), code
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("help differs from %s (-want +got); -update writes it:\n%s", file, diff)
	}
}
