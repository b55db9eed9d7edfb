package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/policy"
)

func (a *app) policyCommand() *cobra.Command {
	var f config.Flags
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Check and try the rules that say which calls go",
		GroupID: groupDecide,
		Long: `Rules in the configuration say which calls of a server go, which are refused, and for which a person is asked. These commands
say whether they are right, and what they decide.`,
		Example: `  rootbound policy check
  rootbound policy test tests.toml
  rootbound policy preset standard`,
		Args: onlyCommands,
		RunE: func(*cobra.Command, []string) error { return a.checkPolicy(f) },
	}
	check := &cobra.Command{
		Use:   "check",
		Short: "Say whether every rule does something, and what becomes of each tool that is known",
		Long: `Read the configuration, and say of each server's tools what becomes of calls of them: what is known of the tool, the hardest
verdict that its calls can have, and the rule that it comes from. The tools are those that are pinned, as the server listed
them last. A rule that can do nothing is an error of the file; one that names a tool or an argument that its server does not
have is found here.

Exit codes: 0 every rule does something, 1 error, 2 wrong usage, 3 a rule does nothing.`,
		Example: `  rootbound policy check
  rootbound policy check --server files --preset cautious`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.checkPolicy(f) },
	}
	test := &cobra.Command{
		Use:   "test FILE…",
		Short: "Try calls, and compare what becomes of them with what should",
		Long: `Decide about the calls of files of tests, without making them, and say which are not decided as the file wants. A test says
a tool, its arguments and the verdict: deny, ask or allow. What the tool does is as the configuration, the profiles and the pins
have it, unless the test says "effect". Paths are those of this machine, and are resolved.

  [[test]]
  server = "files"
  tool = "write_file"
  arguments = { path = "/srv/app/x", content = "new" }
  want = "ask"
  reason = "it changes things"       # a part of the reason; may be left out

Exit codes: 0 all as wanted, 1 error, 2 wrong usage, 3 a call is decided otherwise.`,
		Example: `  rootbound policy test tests.toml`,
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		RunE:    func(_ *cobra.Command, files []string) error { return a.testPolicy(f, files) },
	}
	for _, c := range []*cobra.Command{cmd, check, test} {
		c.Flags().StringVar(&f.Config, "config", "", "a configuration `FILE` instead of the user's")
		c.Flags().StringVar(&f.Preset, "preset", "", "which rules are looked at last, as in run: a `NAME`")
	}
	check.Flags().StringVar(&f.Server, "server", "", "only the server `NAME`")
	check.RegisterFlagCompletionFunc("server", a.completeServers(&f.Config))
	preset := &cobra.Command{
		Use:   "preset [NAME]",
		Short: "Print the rules of a preset, to start from; without NAME, list them",
		Long: `Print a preset: a file of rules like any other, which may be put into a configuration file and changed there.

` + exitCodes,
		Example: `  rootbound policy preset
  rootbound policy preset cautious >> ~/.config/rootbound/rootbound.toml`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions(config.Presets(), cobra.ShellCompDirectiveNoFileComp),
		RunE:              func(_ *cobra.Command, args []string) error { return a.printPreset(args) },
	}
	cmd.AddCommand(check, test, preset)
	return cmd
}

func (a *app) printPreset(args []string) error {
	if len(args) == 1 {
		text, err := config.Preset(args[0])
		if err != nil {
			return usageError{Err: err}
		}
		_, err = a.out.Write(text)
		return err
	}
	var rows [][]string
	for _, name := range config.Presets() {
		text, err := config.Preset(name)
		if err != nil {
			return err
		}
		head, _, _ := strings.Cut(string(text), "\n\n")
		_, about, _ := strings.Cut(strings.ReplaceAll(head, "\n# ", " "), ": ")
		rows = append(rows, []string{name, about})
	}
	return table(a.out, rows)
}

// trial decides about calls of one server without making them.
type trial struct {
	plan  *config.Plan
	name  string
	guard *guard.Guard
	tools []pin.Definition // what is pinned of its tools
}

// trial makes one of what is configured and pinned. With effects, they take the place of what is known of tools.
func (a *app) trial(f config.Flags, effects map[string]guard.Effect) (*trial, error) {
	f.Partial = true
	plan, err := config.Resolve(a.system(), f)
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	t := &trial{plan: plan, name: plan.Server}
	if t.name == "" && plan.Command.Path != "" {
		t.name = serverName(plan, cwd)
	}
	tools, defaults, err := toolRules(plan)
	if err != nil {
		return nil, err
	}
	r := &running{app: a, name: t.name, profile: a.profileOf(plan, nil)}
	p := r.guardPolicy(plan)
	for tool, e := range effects {
		p.Operator[tool] = e
	}
	home, _ := os.UserHomeDir() // without one, "~" in a path is a name like any other
	t.guard = guard.New(guard.Options{
		Server: t.name, Configured: plan.Roots, ClientRoots: plan.ClientRoots.Value, Paths: pathRules(plan, t.name, tools), Defaults: defaults,
		Process: pathargs.Process{Dir: childDir(plan.Command, plan.Roots, cwd), Home: home}, Policy: p, Own: plan.Watched,
	})
	if t.tools, err = a.pinnedTools(plan, t.name, cwd); err != nil {
		return nil, err
	}
	if len(t.tools) > 0 {
		list := []byte(`{"tools":[`)
		for i, d := range t.tools {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, d.Text...)
		}
		t.guard.Learn(append(list, "]}"...))
	}
	return t, nil
}

// pinnedTools are the tools of a server as they are pinned.
func (a *app) pinnedTools(plan *config.Plan, name, cwd string) ([]pin.Definition, error) {
	if plan.Pins.Value == config.PinsOff || name == "" {
		return nil, nil
	}
	s, err := a.pinStore(plan.PinsFile())
	if err != nil {
		return nil, err
	}
	entries, err := s.Pinned()
	if err != nil {
		return nil, err
	}
	var list []pin.Definition
	for _, e := range entries {
		if e.Kind == pin.Tool && e.Server == name && (plan.Command.Path == "" || e.Runs == identity(plan.Command, cwd)) {
			list = append(list, e.Definition)
		}
	}
	return list, nil
}

// policyServers are the servers that rules may be for: those that are configured, or the one that is named, else none.
func (a *app) policyServers(f config.Flags) ([]string, error) {
	if f.Server != "" {
		return []string{f.Server}, nil
	}
	f.ForAll = true
	plan, err := config.Resolve(a.system(), f)
	if err != nil {
		return nil, err
	}
	return plan.Servers, nil
}

func (a *app) checkPolicy(f config.Flags) error {
	servers, err := a.policyServers(f)
	if err != nil {
		return err
	}
	var rows [][]string
	var faults []string
	unknown := []string{}
	all := func(t *trial) {
		if len(t.tools) == 0 {
			unknown = append(unknown, t.name)
		}
		for _, d := range t.tools {
			c, worst, rule := t.guard.Worst(d.Name)
			effect := c.Effect.String()
			if c.From != "" {
				effect += " (" + c.From + ")"
			}
			rows = append(rows, []string{t.name, d.Name, effect, worst.String(), rule})
		}
		for _, fault := range t.guard.Faults() {
			if !slices.Contains(faults, fault) {
				faults = append(faults, fault)
			}
		}
	}
	for _, name := range servers {
		f.Server = name
		t, err := a.trial(f, nil)
		if err != nil {
			return err
		}
		all(t)
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	if len(unknown) > 0 {
		fmt.Fprintf(a.err, "rootbound: nothing is pinned yet of %s, so its tools are not known: start it once\n", strings.Join(quotedAll(unknown), ", "))
	}
	f.Server, f.ForAll = "", true
	plan, err := config.Resolve(a.system(), f)
	if err != nil {
		return err
	}
	wrong, unnamed := strangers(plan)
	faults = append(faults, wrong...)
	for _, text := range append(unnamed, faults...) {
		fmt.Fprintf(a.err, "rootbound: %s\n", printable(text))
	}
	n := len(plan.Policy.Rows)
	if len(faults) > 0 {
		fmt.Fprintf(a.err, "rootbound: %d of what %s say do nothing\n", len(faults), plural(n, "rule", "rules"))
		return exitStatus(exitFindings)
	}
	fmt.Fprintf(a.err, "rootbound: %s, preset %s, asks %s\n", plural(n, "rule", "rules"), plan.Preset.Value, plan.Ask.Value)
	return nil
}

// strangers are rules for servers that no file has: those whose name is nearly that of one, and the others. One without a name in a file
// is called as its package or program is.
func strangers(plan *config.Plan) (faults, unnamed []string) {
	for _, r := range plan.Policy.Rules.Named() {
		if !slices.Contains(plan.Servers, r.Server) {
			if near, ok := launch.Nearest(r.Server, plan.Servers); ok {
				faults = append(faults, fmt.Sprintf("%s: there is no server %q: did you mean %q?", r.At, r.Server, near))
			} else {
				unnamed = append(unnamed, fmt.Sprintf("%s: no file has a server %q: the rule is for one that its start line calls so", r.At, r.Server))
			}
		}
	}
	return faults, unnamed
}

func (a *app) testPolicy(f config.Flags, files []string) error {
	failed, n := 0, 0
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return fmt.Errorf("finding the tests %q: %w", file, err)
		}
		tests, err := config.LoadTests(path)
		if err != nil {
			return err
		}
		for _, test := range tests {
			n++
			effects := map[string]guard.Effect{}
			if test.Effect.Given() {
				effects[test.Tool] = guard.Effect{Effect: test.Effect.Value, From: "the test"}
			}
			f.Server = test.Server
			t, err := a.trial(f, effects)
			if err != nil {
				return fmt.Errorf("%s: %w", test.At, err)
			}
			c, d := t.guard.Try(test.Tool, test.Arguments)
			if d.Verdict == test.Want && strings.Contains(d.Reason, test.Reason) {
				continue
			}
			failed++
			fmt.Fprintf(a.out, "%s: %s: wanted %s, and it is %s\n", printable(test.At), printable(test.Tool), wanted(test), d.Verdict)
			a.tellDecision(c, d)
		}
	}
	if failed > 0 {
		fmt.Fprintf(a.err, "rootbound: %d of %s decided otherwise\n", failed, plural(n, "call", "calls"))
		return exitStatus(exitFindings)
	}
	fmt.Fprintf(a.err, "rootbound: %s decided as wanted\n", plural(n, "call", "calls"))
	return nil
}

func wanted(t config.Test) string {
	if t.Reason == "" {
		return t.Want.String()
	}
	return fmt.Sprintf("%s because of %q", t.Want, t.Reason)
}

// tellDecision tells why something is decided, and what would change it.
func (a *app) tellDecision(c policy.Call, d policy.Decision) {
	fmt.Fprintf(a.out, "  because   %s\n  rule      %s\n", printable(d.Reason), printable(d.Rule))
	effect := c.Effect.String()
	if c.From != "" {
		effect += ", says " + c.From
	}
	fmt.Fprintf(a.out, "  effect    %s\n", printable(effect))
	for i, line := range strings.Split(d.Change, "\n") {
		label := "  to change "
		if i > 0 {
			label = "        or  "
		}
		if line != "" {
			fmt.Fprintf(a.out, "%s%s\n", label, printable(line))
		}
	}
}
