package fsserver

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

const (
	// maxSets is how many sets are held open. Over stdio one is in use, and another for a moment when roots change.
	maxSets = 4
	// idle is how long a set is held open that no call uses.
	idle = time.Minute
	// maxCleaned is about how many entries are looked at for what killed processes left, when a set is opened for the first
	// time.
	maxCleaned = 100_000
)

// sets holds the sets of roots open that calls use, and for a while after. The zero value is ready to use.
type sets struct {
	options  rootfs.Options
	ownNames []string // at the top of a root, not to be changed

	mu      sync.Mutex
	open    []*openSet // the last used first
	cleaned roots.Set  // the last that was looked through for what killed processes left
}

// openSet is a set of roots that is held open.
type openSet struct {
	asked   roots.Set
	options rootfs.Options
	once    sync.Once // opens it

	// What once made:
	set      roots.Set // what can be used of asked
	fs       *rootfs.FS
	problems []rootfs.Problem // the rest
	err      error
	stop     context.CancelFunc // ends the cleaning; nil when there is none

	// Under sets.mu:
	users int
	kept  bool        // it is in open; if not, its last user closes it
	timer *time.Timer // ends it when it stays without users
}

// use returns the set, open. The caller calls done.
func (s *sets) use(set roots.Set) (*openSet, error) {
	s.mu.Lock()
	var o *openSet
	if i := slices.IndexFunc(s.open, func(o *openSet) bool { return o.asked.Equal(set) }); i >= 0 {
		o = s.open[i]
		s.open = slices.Delete(s.open, i, i+1)
	} else {
		o = &openSet{asked: set, options: s.optionsFor(set), kept: true}
	}
	s.open = slices.Insert(s.open, 0, o)
	o.users++
	if o.timer != nil {
		o.timer.Stop()
	}
	if len(s.open) > maxSets {
		s.drop(s.open[maxSets])
	}
	s.mu.Unlock()
	o.once.Do(func() { // not under mu: a disk may be slow, and it is not the disk of the other sets
		o.openRoots()
		s.clean(o)
	})
	if o.err != nil || o.problems != nil {
		s.mu.Lock()
		s.drop(o) // the next call looks again
		s.mu.Unlock()
	}
	if o.err != nil {
		s.done(o)
		return nil, o.err
	}
	return o, nil
}

// optionsFor returns the options for a set of roots.
func (s *sets) optionsFor(set roots.Set) rootfs.Options {
	o := s.options
	o.Protect = slices.Clip(o.Protect)
	for _, d := range set.Dirs() {
		for _, name := range s.ownNames {
			if !d.File {
				o.Protect = append(o.Protect, filepath.Join(d.Path, name))
			}
		}
	}
	return o
}

// clean begins to remove what killed processes left beneath the roots, unless that was done when they, or what holds them,
// were opened before. Nobody waits for it, and closing the set ends it. Where something is wrong with a root, each call
// opens the set again, and nothing is cleaned.
func (s *sets) clean(o *openSet) {
	if o.err != nil || o.problems != nil {
		return
	}
	s.mu.Lock()
	done := s.cleaned.Covers(o.set)
	if !done {
		s.cleaned = o.set
	}
	s.mu.Unlock()
	if done {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	go o.fs.CleanTemporary(ctx, maxCleaned) // what is left is no worse for it
}

// done says that a call does not use o any more.
func (s *sets) done(o *openSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.users--
	switch {
	case o.users > 0:
	case !o.kept:
		o.close()
	default:
		o.timer = time.AfterFunc(idle, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if o.users == 0 {
				s.drop(o)
			}
		})
	}
}

// drop takes o out of the list and closes it, or leaves that to its last user. The caller holds mu.
func (s *sets) drop(o *openSet) {
	if !o.kept {
		return
	}
	o.kept = false
	s.open = slices.DeleteFunc(s.open, func(p *openSet) bool { return p == o })
	if o.users == 0 {
		o.timer.Stop()
		o.close()
	}
}

func (s *sets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.open) > 0 {
		s.drop(s.open[0])
	}
}

func (o *openSet) close() {
	if o.stop != nil {
		o.stop()
	}
	if o.fs != nil {
		o.fs.Close()
	}
}

// openRoots opens what can be opened. A root that cannot be used now does not take the others with it; in its place there
// is a hole, so that a root around it does not give its own rights there.
func (o *openSet) openRoots() {
	o.set = o.asked
	if o.fs, o.err = rootfs.Open(o.set, o.options); o.err == nil {
		return
	}
	if o.problems = rootfs.Check(o.asked); o.problems != nil {
		dirs := o.asked.Dirs()
		for i, d := range dirs {
			if slices.ContainsFunc(o.problems, func(p rootfs.Problem) bool { return p.Dir.Path == d.Path }) {
				dirs[i].Access = 0
			}
		}
		o.set = roots.NewSet(dirs...)
		o.fs, o.err = rootfs.Open(o.set, o.options)
	}
	switch {
	case o.err != nil:
		o.err = refuse(codeUnavailable, "Access denied - the allowed directories cannot be used now: %v", o.err)
	case !readable(o.set):
		var list []string
		for _, p := range o.problems {
			list = append(list, fmt.Sprintf("%s is %s", show(p.Dir.Path), p.Trouble))
		}
		o.err = refuse(codeUnavailable, "Access denied - none of the allowed directories can be used now: %s", strings.Join(list, ", "))
	}
}

// readable reports whether there is anything that may be read.
func readable(set roots.Set) bool {
	return slices.ContainsFunc(set.Dirs(), mayRead)
}

func mayRead(d roots.Dir) bool { return d.Access&roots.Read != 0 }

func mayWrite(d roots.Dir) bool { return d.Access&roots.Write != 0 }
