package config

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long a file is left alone after it was touched: editors write in several steps. Where there is no end
	// of changes, the files are read every poll.
	settle = 50 * time.Millisecond
	// poll is also how often the files are read where the system reports no changes.
	poll = time.Second
)

// Watch calls changed after each saved change of a file that the plan was made from, or that would have been read had it
// been there: with the new plan, or with the error of an invalid file, after which the plan before goes on to hold. It
// returns when ctx ends. Changed is called by one goroutine at a time, the one that called Watch.
func Watch(ctx context.Context, sys System, f Flags, p *Plan, changed func(*Plan, error)) {
	paths, last := p.Watched, p.print
	look := func() {
		now := printOf(paths, nil)
		if now == last {
			return
		}
		last = now
		next, err := Resolve(sys, f)
		if err == nil {
			// What was read may be newer still than what was looked at.
			paths, last = next.Watched, next.print
		}
		changed(next, err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		pollUntil(ctx, look)
		return
	}
	defer w.Close()
	wait := time.NewTimer(0) // what was saved between reading and watching is seen at once
	defer wait.Stop()
	watch(w, paths)
	var since time.Time // of the first change that was not looked at
	touched := func() {
		if since.IsZero() {
			since = time.Now()
		}
		wait.Reset(min(settle, max(0, poll-time.Since(since))))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.Events:
			if !ok {
				return
			}
			touched()
		case _, ok := <-w.Errors: // events were lost: look
			if !ok {
				return
			}
			touched()
		case <-wait.C:
			since = time.Time{}
			watch(w, paths)
			look()
		}
	}
}

func pollUntil(ctx context.Context, look func()) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			look()
		}
	}
}

// watch watches the directories that the paths are in, those that links lead to, and for what is not there yet the
// nearest directory above that is.
func watch(w *fsnotify.Watcher, paths []string) {
	watched := map[string]bool{}
	for _, dir := range w.WatchList() {
		watched[dir] = true
	}
	for _, path := range paths {
		list := []string{path}
		if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
			list = append(list, target)
		}
		for _, p := range list {
			dir := filepath.Dir(p)
			for !isDir(dir) && dir != filepath.Dir(dir) {
				dir = filepath.Dir(dir)
			}
			if !watched[dir] {
				watched[dir] = true
				_ = w.Add(dir) // a directory that cannot be watched is looked at with the next event
			}
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
