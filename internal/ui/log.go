package ui

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/logindex"
)

// logSection is what happened: search, stories of calls, charts, and whether the log was changed.
var logSection = section{name: "log", routes: (*UI).logRoutes, run: followLog}

const (
	// logPage is how many records a page has, chartSlots how many slots a chart.
	logPage    = 50
	chartSlots = 60
	// tellEvery is how often pages hear that there is something new at most.
	tellEvery = 250 * time.Millisecond
	// searchTime is how long a search, or the proof of all chains, may take, and be waited for.
	searchTime = 5 * time.Minute
	// exportTime is how long one record of a file that is saved may take to be taken.
	exportTime = time.Minute
)

// history is the log with its index.
type history struct {
	once sync.Once
	x    *logindex.Index
	err  error

	mu      sync.Mutex // held while a file is verified: one at a time, since that takes a processor
	checked map[string]*checked
}

// checked is what was found of a file's chain, for as long as the file is what it was, and how far it was proven.
type checked struct {
	size   int64
	stamp  time.Time
	whole  bool // it was read from its start as it is now
	chain  chain
	proven calllog.Proven
}

// index opens the index when it is first needed.
func (u *UI) index() (*logindex.Index, error) {
	u.history.once.Do(func() {
		if u.o.LogDir == "" {
			u.history.err = problem{http.StatusNotFound, "nolog", "it is not known where the log is"}
			return
		}
		u.history.x, u.history.err = logindex.Open(u.o.LogIndex, u.o.LogDir, func(note string) { u.few.tell("log", "%s", note) })
	})
	return u.history.x, u.history.err
}

// followLog keeps the index at what the log has, and tells pages of it.
func followLog(ctx context.Context, u *UI) {
	x, err := u.index()
	if err != nil {
		if u.o.LogDir != "" {
			u.o.Report("%v", err)
		}
		return
	}
	defer x.Close()
	var last time.Time
	var wait *time.Timer
	x.Follow(ctx, func() {
		// The last of a quick row is not left out: a page that waits for it would wait for the next.
		if wait != nil {
			wait.Stop()
		}
		if rest := tellEvery - time.Since(last); rest > 0 {
			wait = time.AfterFunc(rest, func() { u.hub.tell("log", progress(x.State())) })
			return
		}
		last = time.Now()
		u.hub.tell("log", progress(x.State()))
	})
}

// reading is how far the index is.
type reading struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	Done  int64 `json:"done"`
}

func progress(s logindex.State) reading { return reading{s.Files, s.Bytes, s.Done} }

func (u *UI) logRoutes() {
	for pattern, f := range map[string]func(*http.Request) (any, error){
		"GET /api/log/search": u.searchLog, "GET /api/log/names": u.logNames, "GET /api/log/chart": u.logChart, "GET /api/log/story": u.logStory,
		"GET /api/log/chain": u.logChain,
	} {
		u.handleSlow(pattern, searchTime, f)
	}
	u.mux.Handle("GET /api/log/export", u.private(http.HandlerFunc(u.exportLog)))
}

// query reads what is looked for.
func query(r *http.Request) (logindex.Query, error) {
	v := r.URL.Query()
	q := logindex.Query{
		Server: v.Get("server"), Tool: v.Get("tool"), Verdict: calllog.Verdict(v.Get("verdict")), Outcome: calllog.Outcome(v.Get("outcome")),
		Path: v.Get("path"), Text: v.Get("text"), Limit: logPage,
	}
	for name, to := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		s := v.Get(name)
		if s == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return q, problem{http.StatusBadRequest, "time", "a time must be written as 2006-01-02T15:04:05Z"}
		}
		*to = at
	}
	if s := v.Get("before"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 {
			return q, problem{http.StatusBadRequest, "request", "there is no such page"}
		}
		q.Before = logindex.Key(n)
	}
	return q, nil
}

// logged is a record as the page shows it.
type logged struct {
	Key     string          `json:"key,omitempty"`
	Time    time.Time       `json:"time"`
	Kind    calllog.Kind    `json:"kind"`
	Server  string          `json:"server"`
	Subject string          `json:"subject"`
	Call    string          `json:"call,omitempty"`
	Word    string          `json:"word"` // what was decided, or came out
	Detail  string          `json:"detail"`
	Outcome calllog.Outcome `json:"outcome,omitempty"`
	MS      float64         `json:"ms,omitempty"`
	Bytes   int64           `json:"bytes,omitempty"`
	Places  []string        `json:"places,omitempty"`
	More    int             `json:"more,omitempty"` // places that are left out
	File    string          `json:"file,omitempty"`
}

// mostPlaces is how many paths of a record are shown in a list.
const mostPlaces = 3

func asLogged(e *calllog.Entry) logged {
	what, word, detail := calllog.Describe(&e.Record)
	l := logged{Time: e.Time, Kind: e.Kind, Server: e.Server, Subject: what, Call: e.Call, Word: word, Detail: detail, File: filepath.Base(e.File)}
	if e.Kind != calllog.Call {
		return l
	}
	// What stood in the way comes first.
	for _, refused := range []bool{true, false} {
		for i := range e.Paths {
			if p := &e.Paths[i]; p.Verdict != "" && (p.Verdict == calllog.Deny) == refused {
				if len(l.Places) < mostPlaces {
					l.Places = append(l.Places, p.Place())
				} else {
					l.More++
				}
			}
		}
	}
	l.Detail = e.Reason
	if l.Detail == "" {
		l.Detail = e.Code
	}
	return l
}

func (u *UI) searchLog(r *http.Request) (any, error) {
	x, err := u.index()
	if err != nil {
		return nil, err
	}
	q, err := query(r)
	if err != nil {
		return nil, err
	}
	page, err := x.Search(r.Context(), q)
	if err != nil {
		return nil, err
	}
	out := struct {
		Hits  []logged `json:"hits"`
		Next  string   `json:"next,omitempty"`
		State reading  `json:"state"`
	}{Hits: []logged{}, State: progress(x.State())}
	for i := range page.Hits {
		h := &page.Hits[i]
		l := asLogged(&h.Entry)
		l.Key, l.Outcome, l.MS, l.Bytes = strconv.FormatInt(int64(h.Key), 10), h.Outcome, h.MS, h.Bytes
		out.Hits = append(out.Hits, l)
	}
	if page.Next != 0 {
		out.Next = strconv.FormatInt(int64(page.Next), 10)
	}
	return out, nil
}

func (u *UI) logNames(r *http.Request) (any, error) {
	x, err := u.index()
	if err != nil {
		return nil, err
	}
	n, err := x.Names(r.Context())
	if err != nil {
		return nil, err
	}
	const most = 1000 // a list that is longer is nothing to choose from
	return map[string][]string{"servers": n.Servers[:min(len(n.Servers), most)], "tools": n.Tools[:min(len(n.Tools), most)]}, nil
}

// slot is a part of the time of a chart.
type slot struct {
	Begin   time.Time  `json:"begin"`
	Allowed int        `json:"allowed"`
	Denied  int        `json:"denied"`
	Other   int        `json:"other"`
	Asked   int        `json:"asked"`
	Ended   int        `json:"ended"`
	Took    [3]float64 `json:"took"` // milliseconds: the half, nine tenths and 99 of a hundred are not over it
}

func (u *UI) logChart(r *http.Request) (any, error) {
	x, err := u.index()
	if err != nil {
		return nil, err
	}
	q, err := query(r)
	if err != nil {
		return nil, err
	}
	chart, err := x.Chart(r.Context(), q, chartSlots)
	if err != nil {
		return nil, err
	}
	slots := []slot{}
	for _, s := range chart.Slots {
		slots = append(slots, slot{s.Begin, s.Allowed, s.Denied, s.Other, s.Asked, s.Ended, [3]float64{s.P50, s.P90, s.P99}})
	}
	return map[string]any{"step": chart.Step.Seconds(), "slots": slots}, nil
}

// story is what the log says of a call.
type story struct {
	Call   logged        `json:"call"`
	Reason string        `json:"reason,omitempty"`
	Code   string        `json:"code,omitempty"`
	Rule   string        `json:"rule,omitempty"`
	Paths  []storyPath   `json:"paths,omitempty"`
	More   int           `json:"more,omitempty"`
	Args   string        `json:"args,omitempty"`
	Roots  []calllog.Dir `json:"roots,omitempty"`
	Before []step        `json:"before,omitempty"`
	After  []step        `json:"after,omitempty"`
	Allow  []string      `json:"allow,omitempty"`
	Record uint64        `json:"record"`
}

// storyPath is a path of the call, as it was judged.
type storyPath struct {
	Arg      string          `json:"arg"`
	Given    string          `json:"given"`
	Resolved string          `json:"resolved"`
	Place    string          `json:"place"`
	Verdict  calllog.Verdict `json:"verdict"`
	Code     string          `json:"code"`
}

// step is what happened to the call before it was decided, or after.
type step struct {
	logged
	From calllog.Party `json:"from,omitempty"`
	Road string        `json:"road,omitempty"` // by which an answer came
}

func (u *UI) logStory(r *http.Request) (any, error) {
	x, err := u.index()
	if err != nil {
		return nil, err
	}
	stories, err := x.Story(r.Context(), r.URL.Query().Get("call"))
	if err != nil {
		return nil, err
	}
	steps := func(list []calllog.Entry) (out []step) {
		for i := range list {
			e := &list[i]
			s := step{logged: asLogged(e), From: e.From}
			s.Outcome, s.MS, s.Bytes = e.Outcome, e.MS, e.Bytes
			switch e.Kind {
			case calllog.End:
				s.Detail = e.Reason
			case calllog.Answered:
				s.Road = e.Code
			}
			out = append(out, s)
		}
		return out
	}
	out := []story{}
	for i := range stories {
		s := &stories[i]
		e := &s.Call
		one := story{Call: asLogged(e), Reason: e.Reason, Code: e.Code, Rule: e.Rule, More: e.PathsOmitted, Roots: s.Roots, Before: steps(s.Asked), After: steps(s.Rest), Allow: s.Allow, Record: e.Seq}
		if len(e.Args) > 0 {
			one.Args = string(e.Args)
		}
		for _, p := range e.Paths {
			one.Paths = append(one.Paths, storyPath{p.Arg, p.Given, p.Resolved, p.Place(), p.Verdict, p.Code})
		}
		out = append(out, one)
	}
	return map[string]any{"stories": out}, nil
}

// chain is what was found of a file's chain of hashes.
type chain struct {
	File    string `json:"file"`
	Server  string `json:"server"`
	Records int    `json:"records"`
	State   string `json:"state"`
	Head    string `json:"head"`
	Tail    int    `json:"tail,omitempty"`
	Line    int    `json:"line,omitempty"` // where it does not hold, and why
	Kind    string `json:"kind,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Error   string `json:"error,omitempty"`
}

// logChain verifies the files that are named, which goes on where it was the last time, or all from their start.
func (u *UI) logChain(r *http.Request) (any, error) {
	names, err := calllog.Files(u.o.LogDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	wanted, some := r.URL.Query()["file"]
	if some {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(wanted, name) })
	}
	chains := []chain{}
	for _, name := range names {
		c, ok, err := u.verifyFile(r.Context(), name, !some)
		if err != nil {
			return nil, err
		}
		if ok {
			chains = append(chains, c)
		}
	}
	return map[string]any{"chains": chains}, nil
}

// verifyFile verifies a file unless that was done since it was changed: all of it, or what was not proven before. The error is that
// of ctx.
func (u *UI) verifyFile(ctx context.Context, name string, all bool) (chain, bool, error) {
	h := &u.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil { // nobody waits for it any more
		return chain{}, false, err
	}
	path := filepath.Join(u.o.LogDir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return chain{}, false, nil // pruned meanwhile
	case err != nil:
		return chain{File: name, Error: err.Error()}, true, nil
	}
	was := h.checked[name]
	if was != nil && was.size == info.Size() && was.stamp.Equal(info.ModTime()) && was.chain.State != calllog.Running.String() && (was.whole || !all) {
		return was.chain, true, nil
	}
	whole := was == nil || all
	if whole {
		was = &checked{}
	}
	report, err := was.proven.Verify(path)
	if err != nil {
		return chain{File: name, Error: err.Error()}, true, nil
	}
	c := chain{File: name, Server: report.Server, Records: report.Records, State: report.State.String(), Head: report.Head, Tail: report.Tail}
	if d := report.Damage; d != nil {
		c.Line, c.Kind, c.Detail = d.Line, string(d.Kind), d.Detail
	}
	if h.checked == nil || len(h.checked) > 10_000 {
		h.checked = map[string]*checked{}
	}
	was.size, was.stamp, was.whole, was.chain = info.Size(), info.ModTime(), whole, c
	h.checked[name] = was
	return c, true, nil
}

// exportLog gives the records that were looked for as they are, one JSON object a line.
func (u *UI) exportLog(w http.ResponseWriter, r *http.Request) {
	x, err := u.index()
	if err != nil {
		refuse(w, err)
		return
	}
	q, err := query(r)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="rootbound-log.jsonl"`)
	c := http.NewResponseController(w)
	p := calllog.Printer{W: w}
	n := 0
	for e, err := range x.All(r.Context(), q) {
		if err != nil { // the browser sees that the file is not whole
			u.few.tell("saving", "saving what is logged: %v", err)
			panic(http.ErrAbortHandler)
		}
		if n%1000 == 0 {
			c.SetWriteDeadline(time.Now().Add(exportTime))
		}
		n++
		if p.PrintJSON(e) != nil {
			return
		}
	}
}
