//go:build unix

package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A directory of a rule is where calls lead: through links, and beside its file.
func TestRuleDirectories(t *testing.T) {
	h := newHome(t)
	h.dir("real/deep")
	if err := os.Symlink("real", filepath.Join(h.top, "link")); err != nil {
		t.Fatal(err)
	}
	h.write("c.toml", rule(`args = { a = { path_under = "link/deep/new" } }`, "deny"))
	f, err := Load(filepath.Join(h.top, "c.toml"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(h.top, "real/deep/new"), filepath.Join(h.top, "link/deep/new")}
	if diff := cmp.Diff(want, f.Rules[0].Args[0].PathUnder); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
