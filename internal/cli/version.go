package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// version names this build as the go command does: the release that its commit is tagged as, else a version made of the
// commit, with +dirty where the checkout had changes. A build outside of a repository is "devel".
func version() string { return builtAs() }

var builtAs = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
})

// origin says which commit a build is of. Its time is the commit's, so that who builds it again has the same program.
func origin(settings []debug.BuildSetting) string {
	var revision, time, changed string
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			time = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				changed = ", with changes that are in no commit"
			}
		}
	}
	if revision == "" {
		return "of no known commit"
	}
	return fmt.Sprintf("commit %s of %s%s", revision, time, changed)
}

// untested says of a platform that nobody has run its build; it is empty for those on which the tests run.
func untested(goos, goarch string) string {
	var system string
	switch {
	case goos == "linux" && goarch == "amd64":
		return ""
	case goos == "linux":
		return fmt.Sprintf("On linux/%s this program is built, but we never ran it there: the tests ran on linux/amd64.", goarch)
	case goos == "darwin":
		system = "macOS"
	default:
		system = strings.ToUpper(goos[:1]) + goos[1:]
	}
	return fmt.Sprintf("On %s this program is built and vetted, but we never ran it there: the tests ran on linux/amd64.", system)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		GroupID: groupMore,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			var settings []debug.BuildSetting
			if info, ok := debug.ReadBuildInfo(); ok {
				settings = info.Settings
			}
			text := fmt.Sprintf("rootbound %s %s/%s %s\n%s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version(), origin(settings))
			if never := untested(runtime.GOOS, runtime.GOARCH); never != "" {
				text += never + "\n"
			}
			_, err := io.WriteString(a.out, text)
			return err
		},
	}
}
