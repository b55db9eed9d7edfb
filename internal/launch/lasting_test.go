package launch

import (
	"path/filepath"
	"testing"
)

func TestLasting(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/local/bin/rootbound":                                   true,
		"/home/kim/go/bin/rootbound":                                 true,
		"/opt/homebrew/bin/rootbound":                                true,
		"/opt/homebrew/opt/rootbound/bin/rootbound":                  true,
		"/home/kim/.nix-profile/bin/rootbound":                       true,
		"/opt/homebrew/Cellar/rootbound/1.2.3/bin/rootbound":         false,
		"/nix/store/abc-rootbound-1.2.3/bin/rootbound":               false,
		"/home/kim/.local/share/mise/installs/rootbound/v1.2/bin/rb": false,
		"/opt/rootbound-1.2.3/rootbound":                             false,
		"/home/kim/.npm/_npx/0a1b/node_modules/.bin/rootbound":       false,
		"/home/kim/.cache/go-build123/b001/exe/rootbound":            false,
		"/tmp/x/rootbound":                                           false,
		"/tmpx/rootbound":                                            true,
	} {
		if got := Lasting(filepath.FromSlash(path), filepath.FromSlash("/tmp")); got != want {
			t.Errorf("Lasting(%q) = %v", path, got)
		}
	}
}
