package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/sandbox"
)

var update = flag.Bool("update", false, "write what is printed into the scripts and the golden files")

func TestMain(m *testing.M) {
	peer := func() { os.Exit(mcptest.Peer(os.Args[1:], os.Stdin, os.Stdout)) }
	testscript.Main(m, map[string]func(){
		"rootbound":             func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"client":                func() { os.Exit(mcptest.Talk(os.Args[1:], os.Stdout, os.Stderr)) },
		"peer":                  peer,
		"visit":                 func() { os.Exit(mcptest.Visit(os.Args[1:])) },
		"mcp-filesystem-server": peer, // a name of which it is known that the arguments are directories
	})
}

// The scripts are sessions of a user, each in a directory and with a home of its own. Beside what every script has there
// are the programs rootbound, client (mcptest.Talk) and peer (mcptest.Peer), the variables CONFIG (the user's file), LOGS
// (where the logs are) and ROOTBOUND (where that program is), and the commands
//
//	exits CODE PROGRAM [ARG…]    for a program that must end with that code
//	site [TOKEN]                 a server over HTTP (mcptest.Site), which may want a token; its URL is in SITE
//	secure FILE                  a site over TLS, whose certificate is written to a file
//	authority                    the same behind a login by OAuth, whose page the program visit visits
//	expand FILE…                 puts the values of variables, written ${NAME}, into files
//
// and the conditions [landlock]: the kernel can confine a process, [watch]: it can watch
// one, and [mounts]: it can hold back what is in a root.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			if runtime.GOOS == "windows" {
				e.Setenv("APPDATA", filepath.Join(home, "config"))
				e.Setenv("LOCALAPPDATA", filepath.Join(home, "state"))
			}
			e.Setenv("GORACE", "atexit_sleep_ms=0") // each of many processes would wait a second for the race detector
			e.Setenv("XDG_CONFIG_HOME", "")
			e.Setenv("XDG_STATE_HOME", "")
			file, err := config.System{Env: e.Getenv, Dir: e.WorkDir, GOOS: runtime.GOOS}.UserFile()
			if err != nil {
				return err
			}
			logs, err := calllog.DefaultDir(e.Getenv, runtime.GOOS)
			if err != nil {
				return err
			}
			e.Setenv("ROOTBOUND", filepath.Join(filepath.SplitList(e.Getenv("PATH"))[0], "rootbound"))
			e.Setenv("CONFIG", file)
			e.Setenv("LOGS", logs)
			return os.MkdirAll(home, 0o700)
		},
		Condition: func(name string) (bool, error) {
			var err error
			switch name {
			case "landlock":
				_, err = sandbox.Supported()
			case "mounts":
				err = sandbox.Parts()
			case "watch":
				_, err = sandbox.Watch{}.Able()
			default:
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "expand": expand, "site": site, "authority": authority, "secure": secure},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("running %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with the code %d, not with %d", args[1], got, want)
	}
}

func site(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: site [TOKEN]")
	}
	s := mcptest.NewSite(strings.Join(args, ""))
	ts.Defer(s.Close)
	ts.Setenv("SITE", s.URL)
}

func secure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: secure FILE")
	}
	s, certificate := mcptest.NewSecureSite()
	ts.Defer(s.Close)
	ts.Setenv("SITE", s.URL)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), certificate, 0o600))
}

func authority(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: authority")
	}
	s, closing := mcptest.NewAuthority()
	ts.Defer(closing)
	ts.Setenv("SITE", s.URL)
}

func expand(ts *testscript.TestScript, neg bool, files []string) {
	if neg || len(files) == 0 {
		ts.Fatalf("usage: expand FILE…")
	}
	for _, name := range files {
		text := variable.ReplaceAllStringFunc(ts.ReadFile(name), func(v string) string { return ts.Getenv(v[2 : len(v)-1]) })
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

var variable = regexp.MustCompile(`\$\{[A-Za-z]+\}`)
