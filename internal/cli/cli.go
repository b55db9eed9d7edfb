// Package cli is the command line: arguments in, parts wired together, text out, an exit code. It is the only room that
// knows the terminal, the environment and the exit.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/unseen"
)

// The exit codes of every command. `run` otherwise ends with the code of the server. The help of a command that does not
// list its own lists these.
const (
	exitDone     = 0
	exitError    = 1
	exitUsage    = 2
	exitFindings = 3
)

const (
	exitCodesBegin = "Exit codes:"
	exitCodes      = exitCodesBegin + " 0 done, 1 error, 2 wrong usage, 3 something was found that should not be."
)

// app is what every command needs.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
}

// usageError is a command line that cannot be understood.
type usageError = config.UsageError

// hintError is an error with the way out.
type hintError struct {
	error
	hint string
}

func (e hintError) Unwrap() error { return e.error }

func withHint(err error, hint string) error { return hintError{err, hint} }

// exitStatus ends the program with a code and no text.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the command line args and returns the exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	if len(args) == 1 && args[0] == sandbox.Argument { // the first, because a server waits for it
		fmt.Fprintf(errw, "rootbound: error: %v\n", sandbox.Enter())
		return exitError
	}
	if len(args) == 1 && args[0] == transport.WatchArgument {
		transport.Watch()
		return exitError
	}
	transport.GrowStack()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if len(args) > 0 && args[0] == tied {
		args = args[1:]
		wait := starter()
		go func() {
			wait()
			cancel(errStarterGone)
		}()
	}
	a := &app{in: in, out: out, err: errw, env: os.Getenv}
	// Reads and writes block a processor of the runtime until it notices; with only one, everything else waits for that.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a client that is gone is an error of the write, not our end
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	root := a.root(args)
	root.SetArgs(args)
	root.SetIn(in)
	help := &remembering{w: out}
	root.SetOut(help)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	return a.exit(cmp.Or(err, help.err))
}

// remembering remembers the error that the library makes nothing of.
type remembering struct {
	w   io.Writer
	err error
}

func (r *remembering) Write(b []byte) (int, error) {
	n, err := r.w.Write(b)
	r.err = cmp.Or(r.err, err)
	return n, err
}

// exit turns an error into text and a code.
func (a *app) exit(err error) int {
	var status exitStatus
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, syscall.EPIPE): // whoever read has enough
		return exitDone
	}
	io.WriteString(a.err, complaint(err))
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// complaint is an error for a person, with the way out where it has one.
func complaint(err error) string {
	text := fmt.Sprintf("rootbound: error: %v\n", err)
	hint := hintError{}
	switch {
	case errors.As(err, &hint):
	case errors.Is(err, fs.ErrPermission):
		hint.hint = "look at who owns that, and at the rights of the directories above it"
	case errors.Is(err, syscall.ENOSPC):
		hint.hint = "make room there; `rootbound purge` lists what Rootbound keeps"
	case errors.Is(err, syscall.EROFS):
		hint.hint = "what is to be written lies on a file system that is mounted to be read only; HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME, say where that is"
	}
	if hint.hint != "" {
		text += fmt.Sprintf("rootbound: hint: %s\n", hint.hint)
	}
	return text
}

const (
	groupRun    = "run"
	groupDecide = "decide"
	groupLook   = "look"
	groupAdopt  = "adopt"
	groupMore   = "more"
)

// root makes the commands that arguments may be for. Clients start a guard for each server and wait for it, so for that nothing is
// made but its own command.
func (a *app) root(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "rootbound",
		Short: "A boundary around MCP servers",
		Long: `Rootbound puts a boundary around MCP servers: the assistant sees the directories you name and nothing else.

Put it in front of a server in your client's configuration:

  rootbound run -- npx -y @modelcontextprotocol/server-filesystem ~/project

or use its own filesystem server:

  rootbound fs ~/project

and see what happened with ` + "`rootbound log`" + `. Without a command it says what runs, and the next step.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return a.overview(cmd.Context()) },
	}
	root.Version = version()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "see `" + cmd.CommandPath() + " --help`"
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			var names []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // of two as near, a letter is forgotten more often
			if near, ok := launch.Nearest(unknown.GetSpecifiedName(), names); ok {
				hint = fmt.Sprintf("did you mean `--%s`? ", near) + hint
			}
		}
		return usageError{Err: withHint(err, hint)}
	})
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupDecide, Title: "Decide:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupAdopt, Title: "Adopt:"},
		&cobra.Group{ID: groupMore, Title: "More:"},
	)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		if !strings.Contains(cmd.Long, exitCodesBegin) {
			fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", exitCodes)
		}
	})
	if guards := map[string]func() *cobra.Command{"run": a.runCommand, "fs": a.fsCommand}; len(args) > 0 && guards[args[0]] != nil {
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(guards[args[0]]())
		return root
	}
	root.AddCommand(a.runCommand(), a.fsCommand(), a.loginCommand(), a.demoCommand())
	root.AddCommand(a.approveCommand(), a.uiCommand(), a.policyCommand(), a.rootsCommand(), a.configCommand())
	root.AddCommand(a.statusCommand(), a.logCommand(), a.whyCommand(), a.doctorCommand(), a.verifyCommand())
	root.AddCommand(a.wrapCommand(), a.unwrapCommand(), a.learnCommand(), a.purgeCommand(), a.versionCommand())
	root.AddCommand(a.shortcuts()...)
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() { // those of the library do not mind a name that there is not
		switch cmd.Name() {
		case "help":
			cmd.Run, cmd.RunE = nil, func(_ *cobra.Command, names []string) error { return helpOn(root, names) }
		case "completion":
			cmd.Args, cmd.RunE = onlyCommands, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// Command returns all commands with every option and what is said of them, for manual pages and completions.
func Command() *cobra.Command {
	root := (&app{}).root(nil)
	var tell func(*cobra.Command)
	tell = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = false })
		if text := cmp.Or(cmd.Long, cmd.Short+"."); !strings.Contains(text, exitCodesBegin) {
			cmd.Long = text + "\n\n" + exitCodes
		}
		for _, c := range cmd.Commands() {
			tell(c)
		}
	}
	tell(root)
	return root
}

// helpOn prints the help of the command with these names.
func helpOn(root *cobra.Command, names []string) error {
	cmd, rest, err := root.Find(names)
	if err != nil {
		return usageError{Err: err}
	}
	if len(rest) > 0 {
		return unknownCommand(cmd, rest[0])
	}
	cmd.InitDefaultHelpFlag()
	return cmd.Help()
}

// onlyCommands is for a command that has others beneath it and takes nothing else.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return nil
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := "see `" + cmd.CommandPath() + " --help`"
	if near, ok := launch.Nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near)
	}
	return usageError{Err: withHint(fmt.Errorf("unknown command %q", name), hint)}
}

// usageArgs makes what f refuses, missing arguments or too many, wrong usage.
func usageArgs(f cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if f(cmd, args) == nil {
			return nil
		}
		err := errors.New("an argument is missing")
		if len(args) > 0 {
			err = fmt.Errorf("reading the arguments %q: there are too many", args)
		}
		form := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		return usageError{Err: withHint(err, fmt.Sprintf("write `%s`; see `%s --help`", form, cmd.CommandPath()))}
	}
}

// jsonLine prints a value as a line of JSON in which everything can be seen.
func (a *app) jsonLine(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintln(a.out, unseen.JSON(string(line)))
	}
	return err
}

// rare hides flags from --help; --help-all shows them.
func rare(cmd *cobra.Command, names ...string) {
	for _, n := range names {
		cmd.Flags().MarkHidden(n)
	}
	all := cmd.Flags().Bool("help-all", false, "help with every option")
	help := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*all {
			return help(cmd, args)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = false })
		return cmd.Help()
	}
	argsCheck := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *all || argsCheck == nil {
			return nil
		}
		return argsCheck(cmd, args)
	}
}
