package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// watching starts Watch and returns what waits for its next report.
func watching(t *testing.T, h *home, f Flags) func() (*Plan, error) {
	t.Helper()
	type report struct {
		plan *Plan
		err  error
	}
	reports := make(chan report)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	p := h.resolve(f)
	go func() {
		defer close(done)
		Watch(ctx, h.sys, f, p, func(p *Plan, err error) {
			select {
			case reports <- report{p, err}:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return func() (*Plan, error) {
		t.Helper()
		select {
		case r := <-reports:
			return r.plan, r.err
		case <-time.After(20 * time.Second):
			t.Fatal("no change was reported")
			return nil, nil
		}
	}
}

// replace saves as editors do: a new file over the old one.
func (h *home) replace(name, text string) {
	h.t.Helper()
	h.write(name+".new", text)
	if err := os.Rename(h.path(name+".new"), h.path(name)); err != nil {
		h.t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	h := newHome(t)
	h.write(user, "active = \"w\"\nroots = [{ path = \"TOP/work\", name = \"w\" }, { path = \"TOP/other\", name = \"o\" }]\n")
	next := watching(t, h, Flags{Roots: []DirFlag{h.flag("--root", "@active")}, Command: []string{"x"}})
	want := func(list ...string) {
		t.Helper()
		p, err := next()
		if err != nil {
			t.Fatal(err)
		}
		if got := h.show(p.Roots); strings.Join(got, ", ") != strings.Join(list, ", ") {
			t.Fatalf("roots %q, want %q", got, list)
		}
	}

	// The workspace is switched, as rootbound roots use does it.
	c, err := Use(h.path(user), "o")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	want("o=other rw")

	// A file with a fault is reported, and the next good one holds.
	h.replace(user, "active = 5\n")
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "rootbound.toml:1:10") {
		t.Fatalf("error %v", err)
	}
	h.replace(user, "active = \"TOP/work/docs\"\n")
	want("work/docs rw")

	// A project's file that was not there narrows.
	h.write(project, "roots = [{ path = \"docs\", access = \"ro\" }]\n")
	want("work/docs ro")
	if err := os.Remove(h.path(project)); err != nil {
		t.Fatal(err)
	}
	want("work/docs rw")

	// A managed file whose directory was not there either.
	if err := os.Remove(h.path("etc")); err != nil {
		t.Fatal(err)
	}
	h.dir("etc")
	h.replace(managed, "roots = [{ path = \"TOP/work\", access = \"ro\" }]\n")
	want("work/docs ro")
}

func TestWatchThroughALink(t *testing.T) {
	h := newHome(t)
	h.dir("dotfiles")
	h.write("dotfiles/mine.toml", "roots = [{ path = \"TOP/work\" }]\n")
	if err := os.Symlink(h.path("dotfiles/mine.toml"), h.path(user)); err != nil {
		t.Skipf("no links here: %v", err)
	}
	next := watching(t, h, Flags{Command: []string{"x"}})
	h.replace("dotfiles/mine.toml", "roots = [{ path = \"TOP/other\" }]\n")
	if p, err := next(); err != nil || h.show(p.Roots)[0] != "other rw" {
		t.Fatalf("plan %v, %v", p, err)
	}
}

// TestWatchSeesWhatWasSavedBefore is about the time between reading and watching.
func TestWatchSeesWhatWasSavedBefore(t *testing.T) {
	h := newHome(t)
	h.write(user, "roots = [{ path = \"TOP/work\" }]\n")
	p := h.resolve(Flags{Command: []string{"x"}})
	h.write(user, "roots = [{ path = \"TOP/other\" }]\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	Watch(ctx, h.sys, Flags{Command: []string{"x"}}, p, func(p *Plan, err error) {
		if err != nil {
			t.Error(err)
		} else {
			got = h.show(p.Roots)
		}
		cancel()
	})
	if len(got) != 1 || got[0] != "other rw" {
		t.Errorf("roots %q", got)
	}
}

func TestPoll(t *testing.T) {
	h := newHome(t)
	h.write("other/f", "x")
	paths := []string{h.path("other/f"), h.path("other/none")}
	before := printOf(paths, nil)
	if again := printOf(paths, map[string][]byte{h.path("other/f"): []byte("x")}); again != before {
		t.Error("the print of what was read is another than that of what is there")
	}
	h.write("other/none", "")
	if printOf(paths, nil) == printOf([]string{filepath.Join(h.top, "a")}, nil) {
		t.Error("prints do not tell files apart")
	}
	ctx, cancel := context.WithCancel(t.Context())
	pollUntil(ctx, cancel)
	if ctx.Err() == nil {
		t.Error("polling ended before its context")
	}
}

// https://github.com/modelcontextprotocol/servers/issues/2815: one directory that is not there does not take the others
// with it, and is served as soon as it is there.
func TestADirectoryThatComesLater(t *testing.T) {
	h := newHome(t)
	h.dir("work")
	flags := Flags{Partial: true, Roots: []DirFlag{h.flag("DIR", h.path("work")), h.flag("--ro", h.path("later"))}}
	if p, err := Resolve(h.sys, Flags{Partial: true, Roots: flags.Roots[1:]}); err == nil {
		t.Errorf("with no directory there: roots %v, want an error", h.show(p.Roots))
	}
	if p, err := Resolve(h.sys, Flags{Roots: flags.Roots}); err == nil {
		t.Errorf("not partial: roots %v, want an error", h.show(p.Roots))
	}
	p := h.resolve(flags)
	if p.Roots.Len() != 1 || len(p.Missing) != 1 || p.Missing[0] != h.path("later") || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "left out until it is") {
		t.Errorf("roots %v, missing %q, notes %q", h.show(p.Roots), p.Missing, p.Notes)
	}
	next := watching(t, h, flags)
	h.dir("later")
	p, err := next()
	if err != nil || p.Roots.Len() != 2 || p.Missing != nil {
		t.Errorf("when it is there: %v, roots %v, missing %q", err, h.show(p.Roots), p.Missing)
	}

	h.write(user, "roots = [{ path = \"TOP/work\" }, { path = \"TOP/nowhere\" }]\n")
	if p := h.resolve(Flags{Partial: true}); p.Roots.Len() != 1 || len(p.Missing) != 1 {
		t.Errorf("of the file: roots %v, missing %q", h.show(p.Roots), p.Missing)
	}
}
