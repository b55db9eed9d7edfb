package clientconf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBelow(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".mcp.json", "a/.mcp.json", "a/b/.mcp.json", "a/b/c/.mcp.json", "node_modules/a/.mcp.json", ".git/.mcp.json", "d/e/other"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(dir, "a", ".mcp.json"), filepath.Join(dir, "a", "b", ".mcp.json")}
	if diff := cmp.Diff(want, Below(dir, ".mcp.json")); diff != "" {
		t.Errorf("Below (-want +got):\n%s", diff)
	}
}
