package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/roots"
)

// Flags are what was typed. The zero value is nothing.
type Flags struct {
	// Roots are --root and --ro, in order.
	Roots []DirFlag
	// ClientRoots is the word of --client-roots.
	ClientRoots string
	// Partial leaves directories out that are not there, of the flags and of the files, unless none is there. The plan has
	// them as Missing, and Watch makes another one when they are there.
	Partial bool
	// Config is --config: it takes the place of the user's file. Server is --server.
	Config string
	Server string
	// ForAll chooses no server, also where there is only one: the plan is that of a server without settings of its own.
	ForAll bool
	// StrictProtocol is --strict-protocol.
	StrictProtocol bool
	// Confine and AllowUnix are --confine and --allow-unix, Net is the word of --net, and the others are what was allowed with
	// --allow-read and its kind.
	Confine, AllowUnix                        bool
	Net                                       string
	AllowRead, AllowWrite, AllowRun, AllowEnv []string
	// Ask is the word of --ask, and Preset that of --preset.
	Ask, Preset string
	// Pins is --pins: a file, or "on" or "off".
	Pins string
	// Log is --log: a directory, or "off".
	Log string
	// URL is --url, Headers are --header as they were typed.
	URL     string
	Headers []string
	// ServerProtocol and ClientProtocol are the words of --server-protocol and --client-protocol.
	ServerProtocol, ClientProtocol string
	// ShareRoots, RemoteRoots and ForwardAuthorization are --share-roots, --remote-root and --forward-authorization.
	ShareRoots, ForwardAuthorization bool
	RemoteRoots                      []string
	// Command is what stands behind "--".
	Command []string
}

// DirFlag is one --root or --ro.
type DirFlag struct {
	Name string
	// Dir is as it was typed; "@active" is the active workspace.
	Dir    string
	Access roots.Access
	// Flag is how it was given, such as "--root": for messages.
	Flag string
}

// ParseDirFlag reads the value [NAME=]DIR of a flag. It is split at the first "=" unless what stands before has a
// separator in it, or a directory of the whole name is in dir, the working directory.
func ParseDirFlag(flag, value string, access roots.Access, dir string) (DirFlag, error) {
	name, path := launch.SplitName(value, func(s string) bool {
		if !filepath.IsAbs(s) {
			s = filepath.Join(dir, s)
		}
		info, err := os.Stat(s)
		return err == nil && info.IsDir()
	})
	switch {
	case path == "":
		return DirFlag{}, fmt.Errorf("reading %s %q: there is no directory in it", flag, value)
	case name == "" && path != value:
		return DirFlag{}, fmt.Errorf("reading %s %q: there is no name before the \"=\"", flag, value)
	}
	return DirFlag{Name: name, Dir: path, Access: access, Flag: flag}, nil
}
