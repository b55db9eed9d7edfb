package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set at link time for releases.
var Version string

// version names this build: the release, else the module's version or the commit it was built from.
func version() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "devel" {
			v = "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		GroupID: groupMore,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(a.out, "rootbound %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			if runtime.GOOS != "linux" {
				fmt.Fprintf(a.out, "On %s this program is built and vetted, but its tests were never run there.\n", runtime.GOOS)
			}
			return nil
		},
	}
}
