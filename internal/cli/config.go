package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show what is configured, and how to write it",
		GroupID: groupDecide,
		Example: `  rootbound config show
  rootbound config show -- npx -y @modelcontextprotocol/server-filesystem ~/project
  rootbound config example toml ~/project`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configShowCommand(), a.configExampleCommand(), &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Long: `Print the JSON Schema of the configuration file, for editors: the key "$schema" of a JSON file may name where it is
saved. A TOML file has the same keys.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(append(trimNewline(config.JSONSchema()), '\n'))
			return err
		},
	})
	return cmd
}

func trimNewline(b []byte) []byte { return []byte(strings.TrimRight(string(b), "\n")) }

func (a *app) configShowCommand() *cobra.Command {
	var f config.Flags
	var origin, asJSON bool
	cmd := &cobra.Command{
		Use:   "show [-- COMMAND [ARG…]]",
		Short: "Print what holds, and from which file and line",
		Long:  `Print what would hold for a server here and now, from every layer of the configuration.`,
		Example: `  rootbound config show --origin
  rootbound config show --server filesystem
  rootbound config show -- npx -y @modelcontextprotocol/server-filesystem ~/project`,
		RunE: func(_ *cobra.Command, args []string) error {
			f.Command = args
			plan, err := config.Resolve(a.system(), f)
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, r := range plainRows(plan) {
				if asJSON {
					if err := a.jsonLine(map[string]string{"key": r.Key, "value": r.Value, "origin": r.Origin}); err != nil {
						return err
					}
					continue
				}
				row := []string{r.Key, r.Value}
				if origin {
					row = append(row, r.Origin)
				}
				rows = append(rows, row)
			}
			for _, n := range plan.Notes {
				fmt.Fprintf(a.err, "rootbound: %s\n", printable(n))
			}
			return table(a.out, rows)
		},
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, a value a line")
	cmd.Flags().StringVar(&f.Config, "config", "", "a configuration `FILE` instead of the user's")
	cmd.Flags().StringVar(&f.Server, "server", "", "the server `NAME` of the file")
	cmd.RegisterFlagCompletionFunc("server", a.completeServers(&f.Config))
	return cmd
}

// plainRows are the rows of what holds, with what looks like a secret replaced.
func plainRows(plan *config.Plan) []config.Row {
	rows := plan.Show()
	args := calllog.RedactArgs(plan.Command.Args)
	for i, r := range rows {
		if n := 0; strings.HasPrefix(r.Key, "args[") {
			if _, err := fmt.Sscanf(r.Key, "args[%d]", &n); err == nil && n < len(args) {
				rows[i].Value = args[n]
			}
		} else if strings.HasPrefix(r.Key, "tool.") {
			rows[i].Value = calllog.RedactText(r.Value)
		}
	}
	return rows
}

func (a *app) configExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "example [json|toml] [DIR…]",
		Short: "Print a configuration that runs as it is printed",
		Long: `Print a configuration with a filesystem server for the directories, or for the working directory: as TOML with our own
keys, or as JSON in the form of clients, with "mcpServers".`,
		Example: `  mkdir -p ~/.config/rootbound
  rootbound config example toml ~/project > ~/.config/rootbound/rootbound.toml
  rootbound config example json ~/frontend ~/backend`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return orDirs([]string{"json", "toml"}, typed)
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			format := splice.TOML
			if len(args) > 0 && (args[0] == "json" || args[0] == "toml") {
				if args[0] == "json" {
					format = splice.JSON
				}
				args = args[1:]
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			var dirs []string
			for _, d := range args {
				dir, err := roots.Resolve(d, roots.ResolveOptions{Access: roots.ReadWrite})
				if err != nil {
					return withHint(err, "the first word may be json or toml, the rest are directories, as in `rootbound config example toml ~/project`")
				}
				dirs = append(dirs, dir.Path)
			}
			program := "rootbound"
			if exe, err := os.Executable(); err == nil {
				program = exe
			}
			_, err := a.out.Write(config.Example(format, program, dirs))
			return err
		},
	}
}

// table prints rows in columns that line up, also with wide characters, and as what a terminal shows and does not obey.
func table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i := range row {
			row[i] = printable(row[i])
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, c := range row {
			b.WriteString(c)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(c)+2))
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) rootsCommand() *cobra.Command {
	var file, server string
	cmd := &cobra.Command{
		Use:     "roots",
		Short:   "List, add, remove and switch roots, and consent to those of a client",
		GroupID: groupDecide,
		Long: `List, add, remove and switch the roots of the configuration file. Comments and layout are kept, and running guards
follow a saved change. What a client opened and no file names is for allow and forget.`,
		Example: `  rootbound roots add ~/project
  rootbound roots add docs=/usr/share/doc --access ro
  rootbound roots use docs
  rootbound roots list --servers`,
		Args: onlyCommands,
		RunE: func(*cobra.Command, []string) error { return a.listRoots(file, server, false) },
	}
	cmd.PersistentFlags().StringVar(&file, "config", "", "the configuration `FILE` (default: the user's)")
	cmd.PersistentFlags().StringVar(&server, "server", "", "the roots of the server `NAME` (default: those for all)")
	cmd.RegisterFlagCompletionFunc("server", a.completeServers(&file))
	access := "rw"
	var pin bool
	add := &cobra.Command{
		Use:   "add [NAME=]DIR",
		Short: "Add a root",
		Long: `Add a directory to the roots for all servers, or with --server to those of one. The first root that a server gets begins
a list of its own, and those for all do not hold for it any more. A file that is not there is made.`,
		Example: `  rootbound roots add ~/project
  rootbound roots add docs=/usr/share/doc --access ro
  rootbound roots add --server filesystem ~/project`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.addRoot(file, server, args[0], access, pin)
		},
	}
	add.Flags().Var(choice{&access, []string{"rw", "ro", "no-delete"}}, "access", "what may be done there")
	add.RegisterFlagCompletionFunc("access", cobra.FixedCompletions([]string{"rw", "ro", "no-delete"}, cobra.ShellCompDirectiveNoFileComp))
	add.Flags().BoolVar(&pin, "pin", false, "keep it whatever the client's list says")
	set := a.setCommand(&file, &server)
	var servers, asJSON bool
	list := &cobra.Command{
		Use:   "list",
		Short: "List the roots, and which is active",
		Long: `List the roots for all servers, or with --server those of one: name, directory, what may be done there, and the line of the
file. A star marks the active workspace. With --servers: what each server was told, whatever gave it.`,
		Example: `  rootbound roots list --server filesystem
  rootbound roots list --servers
  rootbound roots list --json | jq -r .path`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if servers {
				return a.listServers(server, asJSON)
			}
			return a.listRoots(file, server, asJSON)
		},
	}
	list.Flags().BoolVar(&servers, "servers", false, "list which servers were told of which directories, and what waits for consent")
	list.Flags().BoolVar(&asJSON, "json", false, "as JSON, a root a line, or with --servers what a server was told or waits for")
	cmd.AddCommand(add, list, set, a.allowCommand(), a.forgetCommand(),
		&cobra.Command{
			Use:   "remove NAME|DIR",
			Short: "Remove a root",
			Long: `Take a root out of the list for all servers, or with --server out of that of one. After the last one an empty list stays,
which allows nothing.`,
			Example: `  rootbound roots remove docs
  rootbound roots remove --server filesystem ~/project`,
			Args:              usageArgs(cobra.ExactArgs(1)),
			ValidArgsFunction: a.completeRoots(&file, &server),
			RunE: func(_ *cobra.Command, args []string) error {
				err := a.edit(file, func(path string) (config.Change, error) {
					return ofRoot(config.RemoveRoot(path, server, absolute(args[0])))
				})
				if err != nil {
					return err
				}
				return errors.Join(a.noteEmpty(file, server), a.noteList(file, server, "remove"))
			},
		},
		&cobra.Command{
			Use:   "use NAME|DIR",
			Short: "Switch the active workspace, for the guards started with --root @active",
			Long: `Set the active workspace: a root of the configuration by its name, or a directory. Guards that were started with
--root @active follow at once, and those that run are named.`,
			Example: `  rootbound run --root @active -- npx -y @modelcontextprotocol/server-filesystem {roots}
  rootbound roots use ~/project`,
			Args:              usageArgs(cobra.ExactArgs(1)),
			ValidArgsFunction: a.completeRoots(&file, &server),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.use(cmd.Context(), file, args[0])
			},
		},
	)
	return cmd
}

func (a *app) setCommand(file, server *string) *cobra.Command {
	var name, access string
	var pin bool
	cmd := &cobra.Command{
		Use:   "set NAME|DIR",
		Short: "Give a root another name or other rights, or pin it",
		Long: `Give a root of the list for all servers, or with --server of that of one, another name, other rights or another pin. What no
flag names stays. Where it is the active workspace by its name, that follows.`,
		Example: `  rootbound roots set docs --access ro
  rootbound roots set ~/project --name work --pin`,
		Args: usageArgs(cobra.ExactArgs(1)), ValidArgsFunction: a.completeRoots(file, server),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if !given("name") && !given("access") && !given("pin") {
				return usageError{Err: withHint(errors.New("what is to be set?"), "write --name NAME, --access ro or --pin")}
			}
			return a.edit(*file, func(path string) (config.Change, error) {
				return ofRoot(config.SetRoot(path, *server, absolute(args[0]), func(r config.Root) config.Root {
					if given("name") {
						r.Name = name
					}
					if given("access") {
						r.Access, _ = config.AccessOf(access)
					}
					if given("pin") {
						r.Pin = pin
					}
					return r
				}))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "call it `NAME`; an empty one takes the name away")
	f.Var(choice{&access, []string{"rw", "ro", "no-delete"}}, "access", "what may be done there")
	f.BoolVar(&pin, "pin", false, "keep it whatever the client's list says; --pin=false does not")
	cmd.RegisterFlagCompletionFunc("access", cobra.FixedCompletions([]string{"rw", "ro", "no-delete"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// absolute makes a directory out of what looks like one; a name stays.
func absolute(s string) string {
	if strings.HasPrefix(s, "~") || strings.ContainsRune(s, filepath.Separator) || s == "." || s == ".." {
		return place(s)
	}
	return s
}

// place is the directory that a path leads to, be it there or not.
func place(path string) string {
	if d, err := roots.Resolve(path, roots.ResolveOptions{Access: roots.Read, AllowBroad: true}); err == nil {
		return d.Path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (a *app) configFile(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	path, err := a.system().UserFile()
	if path == "" && err == nil {
		err = withHint(errors.New("finding your configuration: it is not known where the files of this user are"), setHome("APPDATA", "XDG_CONFIG_HOME")+", or name a file with --config FILE")
	}
	return path, err
}

func (a *app) edit(file string, change func(path string) (config.Change, error)) error {
	path, err := a.configFile(file)
	if err != nil {
		return err
	}
	c, err := change(path)
	if err != nil {
		return err
	}
	if err := c.Write(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "saved %s\n", printable(path))
	return nil
}

// ofRoot is an edit of a root that there is; where there is none, it says how to find those that there are.
func ofRoot(c config.Change, err error) (config.Change, error) {
	if err != nil {
		err = withHint(err, "`rootbound roots list` shows those that there are")
	}
	return c, err
}

// noteEmpty says what an empty list means, where one is left.
func (a *app) noteEmpty(file, server string) error {
	path, err := a.configFile(file)
	if err != nil {
		return err
	}
	f, err := config.Load(path)
	if err != nil {
		return err
	}
	list := f.Roots
	if s, ok := f.Server(server); ok && server != "" {
		list = s.Roots
	}
	if list.Given() && len(list.Value) == 0 {
		fmt.Fprintf(a.err, "rootbound: the list is empty now, which allows nothing; take `roots = []` out of %s to leave it to the server's own arguments\n", printable(path))
	}
	return nil
}

func (a *app) addRoot(file, server, value, access string, pin bool) error {
	cwd, _ := os.Getwd()
	d, err := config.ParseDirFlag("DIR", value, roots.ReadWrite, cwd)
	if err != nil {
		return usageError{Err: err}
	}
	rights, _ := config.AccessOf(access)
	before := a.held(file, server)
	if err := a.edit(file, func(path string) (config.Change, error) {
		c, err := config.AddRoot(path, server, config.Root{Path: d.Dir, Name: d.Name, Access: rights, Pin: pin})
		if refused := (*roots.Error)(nil); errors.As(err, &refused) && refused.Reason == roots.TooBroad {
			err = withHint(err, "`allow_broad = true` in "+path+" allows it")
		}
		return c, err
	}); err != nil {
		return err
	}
	if before != nil {
		fmt.Fprintf(a.out, "server %q has roots of its own from now on, so those for all do not hold for it any more: %s\n", server, strings.Join(before, ", "))
	}
	return a.noteList(file, server, "add")
}

// held are the roots for all that hold for a server which has none of its own, so far.
func (a *app) held(file, server string) []string {
	path, err := a.configFile(file)
	if err != nil || server == "" {
		return nil
	}
	f, err := config.Load(path)
	if err != nil {
		return nil // the edit says why
	}
	if s, ok := f.Server(server); !ok || s.Roots.Given() {
		return nil
	}
	var list []string
	for _, r := range f.Roots.Value {
		list = append(list, printable(r.Path))
	}
	return list
}

// noteList says for which servers the list for all, which was just used, does not count.
func (a *app) noteList(file, server, verb string) error {
	path, err := a.configFile(file)
	if err != nil || server != "" {
		return nil // an edit has said what is wrong
	}
	f, err := config.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	for _, s := range f.Servers {
		if s.Roots.Given() {
			fmt.Fprintf(a.out, "these are the roots for all; server %q has its own: rootbound roots %s --server %s\n", s.Name, verb, guard.ShellQuote(s.Name))
		}
	}
	return nil
}

// use lists the guards that follow the active workspace, and switches it.
func (a *app) use(ctx context.Context, file, root string) error {
	path, err := a.configFile(file)
	if err != nil {
		return err
	}
	on, failed := a.running(ctx, "")
	if failed != nil {
		fmt.Fprintf(a.err, "rootbound: %s\n", printableLines(failed.Error()))
	}
	follow := 0
	for _, g := range on {
		if g.List != nil && g.List.Active && g.List.File == path {
			follow++
			fmt.Fprintf(a.out, "%s, process %d, follows\n", printable(g.Server), g.PID)
		}
	}
	if err := a.edit(file, func(path string) (config.Change, error) { return ofRoot(config.Use(path, absolute(root))) }); err != nil {
		return err
	}
	switch {
	case follow > 0:
	case len(on) > 0:
		fmt.Fprintf(a.out, "nothing follows it: %s, and none was started with --root @active\n", plural(len(on), "guard runs", "guards run"))
	default:
		fmt.Fprintln(a.out, "no guard runs now; those follow it that are started with --root @active")
	}
	return nil
}

// listedRoot is a root as `rootbound roots list --json` prints it.
type listedRoot struct {
	Name   string `json:"name,omitempty"`
	Path   string `json:"path"`
	Access string `json:"access"`
	Pinned bool   `json:"pinned,omitempty"`
	Active bool   `json:"active,omitempty"`
	Origin string `json:"origin"`
}

func (a *app) listRoots(file, server string, asJSON bool) error {
	plan, err := config.Resolve(a.system(), config.Flags{Config: file, Server: server, ForAll: server == ""})
	if err != nil {
		return err
	}
	for _, n := range plan.Notes {
		fmt.Fprintf(a.err, "rootbound: %s\n", printable(n))
	}
	if plan.Roots.Len() == 0 {
		fmt.Fprintln(a.err, "rootbound: no root is configured; `rootbound roots add DIR` adds one")
	}
	rows := [][]string{}
	for _, d := range plan.Roots.Dirs() {
		r := listedRoot{d.Name, d.Path, guard.LogDir(d).Access, d.Pinned, false, d.Origin}
		r.Active = plan.Active.Given() && (plan.Active.Value == d.Name && d.Name != "" || plan.Active.Value == d.Path)
		if asJSON {
			if err := a.jsonLine(r); err != nil {
				return err
			}
			continue
		}
		mark, pin := " ", ""
		if r.Active {
			mark = "*"
		}
		if r.Pinned {
			pin = "pinned"
		}
		rows = append(rows, []string{mark + " " + cmp.Or(r.Name, "-"), r.Path, r.Access, pin, r.Origin})
	}
	if asJSON {
		return nil
	}
	return errors.Join(table(a.out, rows), a.noteList(file, server, "list"))
}
