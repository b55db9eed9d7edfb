package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/logindex"
)

const (
	logEntries  = 1_000_000
	logRuns     = 24 // files, of which two are written at a time
	logSearches = 7
	rareText    = "zq-needle-zq"
)

// writeLog writes a log as some weeks of work leave it.
func writeLog(dir string, entries int) error {
	random := rand.New(rand.NewPCG(9, 9))
	now := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		now = now.Add(time.Duration(random.IntN(2_000_000)) * time.Microsecond)
		return now
	}
	tools := []string{"read_text_file", "list_directory", "edit_file", "search_files", "write_file", "get_file_info"}
	var open [2]*calllog.Log
	for i, run := 0, 0; i < entries; {
		if i >= run*entries/logRuns {
			l := &open[run%2]
			if *l != nil {
				if err := (*l).Close(0, "client closed"); err != nil {
					return err
				}
			}
			var err error
			start := calllog.Record{Server: fmt.Sprintf("server-%d", run%5), Version: "bench", PID: 1000 + run, Dirs: []calllog.Dir{{Name: "app", Path: "/home/u/projects/app"}}}
			if *l, err = calllog.Create(dir, start, calllog.Options{Now: clock}); err != nil {
				return err
			}
			run++
		}
		l := open[random.IntN(min(run, 2))]
		id, tool := l.NewID(), tools[random.IntN(len(tools))]
		rel := fmt.Sprintf("pkg%d/module%d/file%d.go", random.IntN(40), random.IntN(25), random.IntN(50))
		path := "/home/u/projects/app/" + rel
		call := calllog.Record{Kind: calllog.Call, Call: id, ID: fmt.Appendf(nil, "%d", i), Method: "tools/call", Tool: tool, Verdict: calllog.Allow, Rule: "preset:filesystem:12",
			Args:  fmt.Appendf(nil, `{"path":%q,"head":%d,"stage":"step %d of the plan"}`, path, random.IntN(200), i),
			Paths: []calllog.Path{{Arg: "/path", Given: path, Resolved: path, Root: "app", Rel: rel, Verdict: calllog.Allow}}}
		end := calllog.Record{Kind: calllog.End, Call: id, Method: "tools/call", Tool: tool, Outcome: calllog.OK, MS: float64(random.IntN(50_000)) / 1000, Bytes: int64(random.IntN(20_000))}
		if i == entries/5 {
			call.Args = fmt.Appendf(nil, `{"path":%q,"query":%q,"head":1}`, path, "x")
			call.Reason = "looking for " + rareText
		}
		if random.IntN(50) == 0 {
			call.Verdict, call.Code, call.Reason = calllog.Deny, calllog.CodeOutside, "the path is in no root"
			call.Paths[0] = calllog.Path{Arg: "/path", Given: "/etc/passwd", Resolved: "/etc/passwd", Verdict: calllog.Deny, Code: calllog.CodeOutside}
		}
		if err := l.Append(&call); err != nil {
			return err
		}
		i++
		if call.Verdict == calllog.Deny {
			continue
		}
		if err := l.AppendSoon(&end); err != nil {
			return err
		}
		i++
	}
	var err error
	for _, l := range open {
		if l != nil {
			err = errors.Join(err, l.Close(0, "client closed"))
		}
	}
	return err
}

// logIndex measures the index of a long log. Where there is a budget that is a time, it is a person who waits.
func logIndex(b *bench) ([]result, error) {
	ctx := context.Background()
	dir := filepath.Join(b.dir, "long-log")
	defer os.RemoveAll(dir)
	if err := writeLog(dir, logEntries); err != nil {
		return nil, err
	}
	begun := time.Now()
	n := 0
	for _, err := range calllog.ReadDir(dir, calllog.Filter{}) {
		if err != nil {
			return nil, err
		}
		n++
	}
	read := time.Since(begun)
	path := filepath.Join(dir, "index", "log.sqlite")
	x, err := logindex.Open(path, dir, func(string) {})
	if err != nil {
		return nil, err
	}
	defer x.Close()
	begun = time.Now()
	if err := x.Update(ctx); err != nil {
		return nil, err
	}
	built := time.Since(begun)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	size := float64(x.State().Bytes)
	results := []result{
		summary(fmt.Sprintf("the log: %d records", n), "MB", []float64{size / 1e6}),
		summary("reading all of it", "s", []float64{read.Seconds()}),
		summary("indexing all of it", "s", []float64{built.Seconds()}),
		summary("indexing ÷ reading", "", []float64{built.Seconds() / read.Seconds()}).within(5),
		summary("the index ÷ the log", "", []float64{float64(info.Size()) / size}).within(0.5),
	}
	var page logindex.Page
	var some calllog.Entry
	search := func(q logindex.Query) func() error {
		return func() (err error) {
			page, err = x.Search(ctx, q)
			return err
		}
	}
	for _, m := range []struct {
		name string
		ms   float64
		run  func() error
	}{
		{"an update that finds nothing new", 0, func() error { return x.Update(ctx) }},
		{"the newest 50", 100, search(logindex.Query{})},
		{"what was refused", 100, search(logindex.Query{Verdict: calllog.Deny})},
		{"a server and a tool", 100, search(logindex.Query{Server: "server-3", Tool: "edit_file"})},
		{"under a large directory", 0, search(logindex.Query{Path: "/home/u/projects"})},
		{"under a directory that is rare", 1000, search(logindex.Query{Path: "/home/u/projects/app/pkg7/module3/file9.go"})},
		{"a time long ago", 100, search(logindex.Query{Until: time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)})},
		{"a text that is everywhere", 100, search(logindex.Query{Text: "of the plan"})},
		{"a text that is there once", 3000, search(logindex.Query{Text: rareText})},
		{"a text that is nowhere", 3000, search(logindex.Query{Text: "not-" + rareText})},
		{"one call's story", 1000, func() error { _, err := x.Story(ctx, some.Call); return err }},
		{"chart of all of it", 2000, func() error { _, err := x.Chart(ctx, logindex.Query{}, 60); return err }},
	} {
		if some.Call == "" && len(page.Hits) > 0 {
			some = page.Hits[0].Entry
		}
		var took []float64
		for range logSearches {
			begun := time.Now()
			if err := m.run(); err != nil {
				return nil, err
			}
			took = append(took, float64(time.Since(begun).Microseconds())/1000)
		}
		r := summary(m.name, "ms", took)
		if m.ms > 0 {
			r = r.within(m.ms)
		}
		results = append(results, r)
	}
	return results, nil
}
