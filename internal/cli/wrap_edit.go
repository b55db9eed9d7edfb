package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
)

func (a *app) printVerdicts(c *configured, f *clientconf.File, list []verdict) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(a.out, "%s (%s, %s", printable(f.Path), f.Client.Name, f.Place.Scope)
	if also := c.also[realPath(f.Path)]; len(also) > 0 {
		fmt.Fprintf(a.out, "; also read by %s", strings.Join(also, ", "))
	}
	fmt.Fprintln(a.out, ")")
	for _, v := range list {
		name := v.server.Name
		if v.server.Scope == clientconf.Local {
			name += " of " + v.server.Project
		}
		if v.entry != nil {
			v.why = "is to be wrapped by hand: " + v.server.File.Client.ReadOnly
			if v.server.File.Client.Writable {
				v.why = "would be wrapped as this; the rest of its entry stays"
			}
		}
		fmt.Fprintf(a.out, "  %s %s\n", printable(name), printable(v.why))
		for _, line := range v.entry {
			fmt.Fprintf(a.out, "    %s\n", printable(line))
		}
		if v.hint != "" {
			fmt.Fprintf(a.out, "    %s\n", printable(v.hint))
		}
	}
}

// words are the arguments of a wrapped server.
func words(s *clientconf.Server, options []string) []string {
	return slices.Concat([]string{"run"}, options, []string{"--"}, calllog.RedactArgs(append([]string{s.Command.Text}, s.Launch().Args...)))
}

// edits are the changes of one command.
type edits struct {
	n       int
	failed  bool // a server could not be changed that should have been
	open    bool // one that opens directories stays without Rootbound
	restart []string
}

// change makes the edits of one file that the verdicts ask for, and says in the verdicts which could not be made. There is no
// draft where there is no edit.
func (e *edits) change(f *clientconf.File, list []verdict, edit func(*clientconf.Draft, *clientconf.Server) error) *clientconf.Draft {
	d, err := (*clientconf.Draft)(nil), error(nil)
	changed := false
	for i := range list {
		v := &list[i]
		if v.change && d == nil && err == nil {
			d, err = f.Draft()
		}
		if v.change {
			fault := err
			if fault == nil {
				fault = edit(d, v.server)
			}
			if fault != nil {
				e.failed = true
				v.change, v.why, v.hint = false, "stays as it is: "+fault.Error(), ""
			}
			changed = changed || fault == nil
		}
		e.open = e.open || v.open
	}
	if !changed {
		return nil
	}
	return d
}

// show shows an edit of a file, and writes it where that is asked for.
func (e *edits) show(a *app, o wrapOptions, c *configured, f *clientconf.File, d *clientconf.Draft, before func() error) {
	after := f.With(d.Bytes())
	path := printable(f.Path)
	fmt.Fprint(a.out, "\n", printableLines(udiff.Unified(path, path, shown(f), shown(after))), "\n", c.writers(f))
	e.n++
	if restart := f.Client.Name + ": " + f.Client.Restart; !slices.Contains(e.restart, restart) {
		e.restart = append(e.restart, restart)
	}
	if !o.write {
		return
	}
	err := errors.Join(before(), d.Write())
	if err == nil && !slices.ContainsFunc(after.Servers, wrapped) {
		err = after.Forget()
	}
	if err != nil {
		e.n--
		e.failed = true
		fmt.Fprintf(a.err, "rootbound: error: %s\n", printableLines(err.Error()))
		return
	}
	saved := "saved " + path
	if slices.ContainsFunc(after.Servers, wrapped) {
		saved += "; what it was is in " + printable(filepath.Base(f.Backup()))
	}
	fmt.Fprint(a.out, saved, "\n\n")
}

// end says what is to be done next.
func (e *edits) end(a *app, o wrapOptions) error {
	switch {
	case e.n == 0 && !e.failed && !o.print:
		fmt.Fprintf(a.out, "No file is to be changed.\n")
	case e.n > 0 && !o.write:
		fmt.Fprintln(a.out, "Nothing was written; --write does it.")
	}
	if o.write && e.n > 0 {
		fmt.Fprintf(a.out, "Now, for it to count:\n  %s\n", strings.Join(e.restart, "\n  "))
	}
	switch {
	case e.failed:
		return exitStatus(exitError)
	case e.open:
		return exitStatus(exitFindings)
	}
	return nil
}

// writers says that the file is written by another program, which takes an edit back.
func (c *configured) writers(f *clientconf.File) string {
	var b strings.Builder
	for w, path := range f.Writers(c.host) {
		fmt.Fprintf(&b, "%s is here (%s), and %s: wrap the server there, too, with what --print prints.\n\n", w.Name, printable(path), w.ReadOnly)
	}
	return b.String()
}

// longLine is how long a line of a file may be to be shown as one.
const longLine = 500

// shown is the text of a file for a diff: without what may be a secret, and with long lines broken where values begin.
func shown(f *clientconf.File) string {
	var b strings.Builder
	// In comments there may be secrets, too. Of a text that is masked already nothing is left to measure.
	text := strings.ReplaceAll(calllog.RedactText(f.Masked(calllog.RedactArgs)), "[3 bytes redacted]", "…")
	for line := range strings.Lines(text) {
		if len(line) > longLine {
			line = strings.NewReplacer(`,"`, ",\n\"", `, "`, ",\n\"", `{"`, "{\n\"").Replace(line)
		}
		b.WriteString(line)
	}
	return b.String()
}
