package fsserver

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/rootfs"
)

const (
	// maxWalk is how long a walk takes at most. Many clients wait a minute for an answer.
	maxWalk = 45 * time.Second
	// maxEnding is how long is waited for the end of a walk whose time is over, and maxStill for the next thing that a call does.
	maxEnding = time.Second
	maxStill  = 3 * time.Second
	// maxWalked is how many entries a walk reads at most.
	maxWalked = 10_000_000
	// maxFound is about how many bytes of paths, or of a tree, one answer carries: a third is left for what JSON adds.
	maxFound = 3 << 20
)

// walked is what a walk of one call has seen.
type walked struct {
	rootfs.Walked
	start string // the absolute path of where it began, without links
	late  bool   // it took too long, and what comes later in the tree is missing
	stuck bool   // and a file system in it did not answer
}

// findings guard what the visits of a walk have found. A walk that a file system holds up goes on behind its call, and what is
// found then is nobody's.
type findings struct {
	sync.Mutex
	some bool // something was found
	over bool
}

// found runs what adds to the findings, as long as the call uses them.
func (f *findings) found(add func()) {
	f.Lock()
	defer f.Unlock()
	if !f.over {
		f.some = true
		add()
	}
}

// any reports whether something was found.
func (f *findings) any() bool {
	f.Lock()
	defer f.Unlock()
	return f.some
}

// finish says that the call uses the findings.
func (f *findings) finish() {
	f.Lock()
	defer f.Unlock()
	f.over = true
}

// walk walks beneath the directory that an argument means, within the bounds of one call. Prepare makes what visits each
// directory, for the absolute path of the start; the walk ends with the context that it gets. What visits keep is added by found.
func (c *call) walk(
	arg string, o rootfs.WalkOptions, prepare func(ctx context.Context, start string) (func(*rootfs.Directory) []rootfs.Entry, error),
) (walked, error) {
	if err := c.slot.take(c.ctx, c.slots.walks); err != nil {
		return walked{}, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.slots.waits.walk)
	defer cancel()
	var seen atomic.Int64
	defer c.report(&seen, "entries seen")()
	var w walked
	_, err := c.at(opScandir, arg, func(start string) error {
		visit, err := prepare(ctx, start)
		if err == nil {
			w, err = c.walkFrom(ctx, start, o, &seen, visit)
		}
		return err
	})
	if err != nil {
		return walked{}, err
	}
	return w, nil
}

// walkFrom walks beneath an absolute path. When its time is over it returns, also while the kernel keeps one of its steps: nobody
// can end that, and it goes on by itself.
func (c *call) walkFrom(ctx context.Context, start string, o rootfs.WalkOptions, seen *atomic.Int64, visit func(*rootfs.Directory) []rootfs.Entry) (walked, error) {
	var begun atomic.Bool // the start is visited
	var unreadable atomic.Int64
	var failed error // the start
	var real atomic.Value
	type end struct {
		rootfs.Walked
		err error
	}
	ended := make(chan end, 1)
	c.slot.begin()
	go func() {
		defer c.slot.end()
		real.Store(c.real(start)) // here: it is asked of the same file system
		w, err := c.fs.Walk(ctx, start, o, func(d *rootfs.Directory) []rootfs.Entry {
			c.slot.moves()
			seen.Add(int64(len(d.Entries)))
			switch {
			case d.Err == nil:
			case d.Parent == nil:
				failed = d.Err
			default:
				unreadable.Add(1)
			}
			enter := visit(d)
			begun.Store(true)
			return enter
		})
		ended <- end{w, errors.Join(err, failed)}
	}()
	var e end
	stuck := false
	select {
	case e = <-ended:
	case <-ctx.Done():
		select {
		case e = <-ended:
		case <-time.After(maxEnding):
			stuck = true
			c.finish()
			e = end{rootfs.Walked{Entries: seen.Load(), Unreadable: unreadable.Load()}, ctx.Err()}
		}
	}
	late := errors.Is(e.err, context.DeadlineExceeded) && c.ctx.Err() == nil
	switch {
	case late && !begun.Load() && !c.any():
		return walked{}, refuse(rootfs.Budget, "Looking into '%s' was ended after %v: what it lies in does not answer.", show(c.written(start)), maxWalk)
	case late:
		e.err = nil
	}
	at, _ := real.Load().(string)
	return walked{Walked: e.Walked, start: at, late: late, stuck: stuck}, e.err
}

// excludeParam is the parameter of what is left out. It means the same for every tool.
var excludeParam = param{name: "excludePatterns", schema: aList.says("What to leave out, with all that is beneath it. A name or path without * " +
	"is left out wherever it is; a pattern with * is matched against the path beneath the directory")}

// filter says what a walk leaves out.
type filter struct {
	c        *call
	ctx      context.Context // of the walk
	start    string
	excludes excludes
	ignoring *ignoring // above the start
}

// dirFilter is what is left out in one directory.
type dirFilter struct {
	excludes []globState
	ignoring *ignoring
}

// filter makes the filter of the arguments for a walk from an absolute path.
func (c *call) filter(ctx context.Context, start string) (*filter, error) {
	x, err := compileExcludes(c.args.list("excludePatterns"))
	if err != nil {
		return nil, err
	}
	s := &filter{c: c, ctx: ctx, start: start, excludes: x}
	if c.args.is("gitignore") {
		s.ignoring = c.ignoreFrom(start)
	}
	return s, nil
}

// in returns what is left out in a directory. It is called inside visit, with what is left out in its parent.
func (f *filter) in(d *rootfs.Directory, parent dirFilter) dirFilter {
	if d.Parent == nil {
		return dirFilter{f.excludes.start(), f.c.ignoreBeneath(f.ignoring, d, f.start)}
	}
	return dirFilter{f.excludes.beneath(parent.excludes, path.Base(d.Path)), f.c.ignoreBeneath(parent.ignoring, d, f.start)}
}

// leavesOut reports whether an entry is left out. When the walk has ended all are: a directory with many entries and many
// patterns takes long.
func (f *filter) leavesOut(at dirFilter, e rootfs.Entry) bool {
	return f.ctx.Err() != nil || f.excludes.matches(at.excludes, e.Name) || at.ignoring.ignores(e)
}

// isLink reports whether an entry is a link, or what is like one on Windows.
func isLink(e rootfs.Entry) bool { return e.Type&(fs.ModeSymlink|fs.ModeIrregular) != 0 }

// joined returns the absolute path of what is beneath a directory.
func joined(start, beneath string) string { return filepath.Join(start, filepath.FromSlash(beneath)) }
