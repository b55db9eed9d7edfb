package logindex

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
)

// Key is a record's place in the order of time. No two records have the same. Zero is none.
type Key int64

const (
	keyBits = 12 // of a key number the records of one microsecond
	maxTime = math.MaxInt64>>keyBits - 1
)

// Time is when the record was written, as far as the order goes: a clock that was set back does not count.
func (k Key) Time() time.Time { return time.UnixMicro(int64(k) >> keyBits) }

// Query selects records. The zero value selects all; several conditions must all hold.
type Query struct {
	// Server is the name of a server. It selects also what a guard behind it logged (see calllog.Filter).
	Server string
	// Tool is the name of a tool, or of a method where a record has no tool.
	Tool    string
	Verdict calllog.Verdict
	// Outcome is how a call ended.
	Outcome calllog.Outcome
	// Path is a directory, or a file: a path of the record is it, or lies below.
	Path string
	// Since and Until are the first time and the first one that is too late.
	Since, Until time.Time
	// Text is in a value of the record, whatever the case of letters of ASCII.
	Text string

	// Before selects what is older than a record.
	Before Key
	// Limit is how many records a page has; 50 when it is 0, and 1,000 at most.
	Limit int
}

const (
	usualLimit = 50
	mostLimit  = 1000
)

// Hit is a record that was found.
type Hit struct {
	Key Key
	calllog.Entry
	// Outcome, MS and Bytes are how a call ended; of a call that has not, or was refused, they are empty.
	Outcome calllog.Outcome
	MS      float64
	Bytes   int64
}

// Page is a part of what was found.
type Page struct {
	// Hits are the newest first.
	Hits []Hit
	// Next is Query.Before for the next page; 0 when there is none.
	Next Key
}

// Search finds records, the newest first. How calls ended, and how people answered, stands in the record of the call, or in its
// story; such records are found by themselves only by a text.
func (x *Index) Search(ctx context.Context, q Query) (Page, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = usualLimit
	}
	limit = min(limit, mostLimit)
	var rows []row
	var words map[int64]string
	var files map[int64]string
	err := x.read(ctx, func(c *database) (err error) {
		rows = rows[:0]
		if words, files, err = names(c); err != nil {
			return err
		}
		return x.scan(c, q, scanning{hide: q.Text == "", files: files}, func(r *row) bool {
			rows = append(rows, *r)
			return len(rows) <= limit
		})
	})
	if err != nil {
		return Page{}, err
	}
	var page Page
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = rows[limit-1].key
	}
	for _, r := range rows {
		e, ok := x.entry(files[r.file], r.at, r.size)
		if !ok {
			continue
		}
		page.Hits = append(page.Hits, Hit{r.key, e, calllog.Outcome(words[r.outcome]), r.ms, r.bytes})
	}
	return page, nil
}

// All yields the records that q selects, in the order of time, with how calls ended among them, and without a limit: for writing them
// elsewhere. When the index turns out to be damaged, that is an error, since some may be there already.
func (x *Index) All(ctx context.Context, q Query) iter.Seq2[calllog.Entry, error] {
	return func(yield func(calllog.Entry, error) bool) {
		on, builds := true, x.timesBuilt()
		err := x.read(ctx, func(c *database) error {
			if x.timesBuilt() != builds {
				return errAnew
			}
			_, files, err := names(c)
			if err != nil {
				return err
			}
			readers := readers{dir: x.dir}
			defer readers.close()
			return x.scan(c, q, scanning{files: files, up: true}, func(r *row) bool {
				line, ok := readers.line(files[r.file], r.at, r.size, true)
				if e, sound := parse(line); ok && sound {
					e.File, e.Offset = filepath.Join(x.dir, files[r.file]), r.at
					on = yield(e, nil)
				} else {
					x.doubt(files[r.file])
				}
				return on
			})
		})
		if err != nil && on {
			yield(calllog.Entry{}, err)
		}
	}
}

// errAnew is why not all of it was found.
var errAnew = errors.New("it is being built anew: try again in a moment")

// entry reads a record where the index says it is. When it is not there, the index is wrong about its file.
func (x *Index) entry(name string, at, size int64) (calllog.Entry, bool) {
	r := calllog.NewReader(filepath.Join(x.dir, name), at)
	defer r.Close()
	e, err := r.Next()
	if err != nil || int64(len(e.Line)) != size {
		x.doubt(name)
		return e, false
	}
	return e, true
}

// doubt lets the next update look at a file anew.
func (x *Index) doubt(name string) {
	x.mu.Lock()
	x.suspect[name] = true
	x.mu.Unlock()
}

// Names are what can be searched for.
type Names struct {
	Servers, Tools []string
}

// Names returns the names of the servers and of the tools, or methods, that records are about, sorted.
func (x *Index) Names(ctx context.Context) (Names, error) {
	var n Names
	err := x.read(ctx, func(c *database) error {
		n = Names{}
		s, err := c.query(fmt.Sprintf("SELECT role, text FROM word WHERE role IN (%d, %d) AND text <> '' ORDER BY text", roleServer, roleSubject))
		if err != nil {
			return err
		}
		defer s.close()
		for s.step() {
			if s.int(0) == roleServer {
				n.Servers = append(n.Servers, s.text(1))
			} else {
				n.Tools = append(n.Tools, s.text(1))
			}
		}
		return s.err
	})
	return n, err
}

// names reads which words and files the ids stand for.
func names(c *database) (words, files map[int64]string, err error) {
	words, files = map[int64]string{}, map[int64]string{}
	for _, t := range []struct {
		sql  string
		into map[int64]string
	}{{"SELECT id, text FROM word", words}, {"SELECT id, name FROM file", files}} {
		s, err := c.query(t.sql)
		if err != nil {
			return nil, nil, err
		}
		for s.step() {
			t.into[s.int(0)] = s.text(1)
		}
		if err := s.close(); err != nil {
			return nil, nil, err
		}
	}
	return words, files, nil
}

// row is a record as the index has it.
type row struct {
	key                            Key
	file, at, size                 int64
	kind, server, verdict, outcome int64
	ms                             float64
	bytes                          int64
}

// scanning is how rows are looked at.
type scanning struct {
	hide  bool           // not how calls ended, and how people answered
	kinds []calllog.Kind // only these, if any
	up    bool           // the oldest first
	files map[int64]string
}

// scan calls visit with the rows that q selects until it returns false.
func (x *Index) scan(c *database, q Query, how scanning, visit func(*row) bool) error {
	where, possible, err := conditions(c, q, how)
	if err != nil || !possible {
		return err
	}
	var under func(list []byte) bool
	if q.Path != "" {
		if under, err = below(c, q.Path); err != nil || under == nil {
			return err
		}
		where = append(where, "places IS NOT NULL")
	}
	order := "DESC"
	if how.up {
		order = "ASC"
	}
	sql := "SELECT key, file, at, size, kind, server, verdict, outcome, ms, bytes, places FROM entry"
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	s, err := c.query(sql + " ORDER BY key " + order)
	if err != nil {
		return err
	}
	defer s.close()
	var text *calllog.Text
	readers := readers{dir: x.dir}
	if q.Text != "" {
		text = calllog.NewText(q.Text)
		defer readers.close()
	}
	var r row
	var places []byte
	for s.step() {
		if under != nil {
			if places = s.blob(10, places); !under(places) {
				continue
			}
		}
		r.key, r.file, r.at, r.size = Key(s.int(0)), s.int(1), s.int(2), s.int(3)
		if text != nil {
			line, ok := readers.line(how.files[r.file], r.at, r.size, how.up)
			if !ok {
				x.doubt(how.files[r.file])
				continue
			}
			if !text.In(line) {
				continue
			}
		}
		r.kind, r.server, r.verdict, r.outcome = s.int(4), s.int(5), s.int(6), s.int(7)
		r.ms, r.bytes = s.float(8), s.int(9)
		if !visit(&r) {
			return nil
		}
	}
	return s.err
}

// conditions are the conditions of q that SQLite looks at; possible is false when no record can hold them.
func conditions(c *database, q Query, how scanning) (where []string, possible bool, err error) {
	possible = true
	one := func(column string, match string, args ...string) {
		if err != nil || !possible {
			return
		}
		var ids []string
		if ids, err = wordIDs(c, match, args...); err != nil {
			return
		}
		possible = len(ids) > 0
		where = append(where, column+" IN ("+strings.Join(ids, ",")+")")
	}
	if q.Server != "" {
		one("server", fmt.Sprintf("role = %d AND (text = ?1 OR substr(text, 1, length(?1) + 1) = ?1 || '/')", roleServer), cut(q.Server))
	}
	if q.Tool != "" {
		one("subject", fmt.Sprintf("role = %d AND text = ?", roleSubject), cut(q.Tool))
	}
	if q.Verdict != "" {
		one("verdict", fmt.Sprintf("role = %d AND text = ?", roleVerdict), cut(string(q.Verdict)))
	}
	if q.Outcome != "" {
		one("outcome", fmt.Sprintf("role = %d AND text = ?", roleOutcome), cut(string(q.Outcome)))
	}
	if how.hide {
		one("kind", fmt.Sprintf("role = %d AND text NOT IN (?, ?)", roleKind), string(calllog.End), string(calllog.Answered))
	}
	if len(how.kinds) > 0 {
		var kinds []string
		for _, k := range how.kinds {
			kinds = append(kinds, string(k))
		}
		one("kind", fmt.Sprintf("role = %d AND text IN (?%s)", roleKind, strings.Repeat(", ?", len(kinds)-1)), kinds...)
	}
	if !q.Since.IsZero() {
		where = append(where, fmt.Sprintf("key >= %d", first(q.Since)))
	}
	if !q.Until.IsZero() {
		where = append(where, fmt.Sprintf("key < %d", first(q.Until)))
	}
	if q.Before > 0 {
		where = append(where, fmt.Sprintf("key < %d", q.Before))
	}
	return where, possible, err
}

// first is the first key of a time.
func first(t time.Time) int64 {
	return min(max(t.UnixMicro(), 0), maxTime) << keyBits
}

func wordIDs(c *database, match string, args ...string) ([]string, error) {
	s, err := c.query("SELECT id FROM word WHERE " + match)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for i, arg := range args {
		s.bind(i+1, arg)
	}
	var ids []string
	for s.step() {
		ids = append(ids, s.text(0))
	}
	return ids, s.err
}

// below returns what tells whether one of a row's places is dir or lies below it; nil when none does.
func below(c *database, dir string) (func(list []byte) bool, error) {
	dir = cut(dir)
	if trimmed := strings.TrimRight(dir, `/\`); trimmed != "" {
		dir = trimmed
	}
	slash, back := dir, dir
	if !strings.HasSuffix(dir, "/") {
		slash += "/"
	}
	if !strings.HasSuffix(dir, `\`) {
		back += `\`
	}
	s, err := c.query("SELECT id FROM place WHERE path = ? OR path >= ? AND path < ? OR path >= ? AND path < ?")
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.bind(1, dir)
	s.bind(2, slash)
	s.bind(3, slash[:len(slash)-1]+"0") // what comes after a slash
	s.bind(4, back)
	s.bind(5, back[:len(back)-1]+"]")
	var set []uint64
	for s.step() {
		id := s.int(0)
		for int64(len(set)) <= id/64 {
			set = append(set, 0)
		}
		set[id/64] |= 1 << (id % 64)
	}
	if err := s.err; err != nil || set == nil {
		return nil, err
	}
	return func(list []byte) bool {
		for len(list) > 0 {
			id, n := binary.Uvarint(list)
			if n <= 0 {
				return false
			}
			if id/64 < uint64(len(set)) && set[id/64]&(1<<(id%64)) != 0 {
				return true
			}
			list = list[n:]
		}
		return false
	}, nil
}

// Story tells the stories of the calls with a short id, the newest first: ids of different runs may be the same. There is none when no
// such call is logged.
func (x *Index) Story(ctx context.Context, call string) ([]calllog.Story, error) {
	if !calllog.IsID(call) {
		return nil, nil
	}
	type part struct {
		name     string
		at, size int64
	}
	var parts []part
	err := x.read(ctx, func(c *database) error {
		parts = parts[:0]
		words, files, err := names(c)
		if err != nil {
			return err
		}
		s, err := c.query("SELECT file, at, size, key FROM entry WHERE call = ? ORDER BY key")
		if err != nil {
			return err
		}
		defer s.close()
		s.bind(1, call)
		begun := map[int64]bool{}
		for s.step() {
			file, key := s.int(0), s.int(3)
			if !begun[file] {
				begun[file] = true
				// How the run began, and the last time that roots changed, say what was effective.
				for _, kind := range []calllog.Kind{calllog.Start, calllog.RootsChanged} {
					id := int64(-1)
					for w, text := range words {
						if text == string(kind) {
							id = w
						}
					}
					p := part{name: files[file]}
					if ok, err := last(c, file, id, key, &p.at, &p.size); err != nil {
						return err
					} else if ok {
						parts = append(parts, p)
					}
				}
			}
			parts = append(parts, part{files[file], s.int(1), s.int(2)})
		}
		return s.err
	})
	if err != nil {
		return nil, err
	}
	return calllog.Why(func(yield func(calllog.Entry, error) bool) {
		for _, p := range parts {
			if e, ok := x.entry(p.name, p.at, p.size); ok && !yield(e, nil) {
				return
			}
		}
	}, call, mostStories)
}

const mostStories = 5

// last finds the last record of a kind in a file before a key.
func last(c *database, file, kind, before int64, at, size *int64) (bool, error) {
	s, err := c.query("SELECT at, size FROM entry WHERE key < ? AND key >= (SELECT first FROM file WHERE id = ?2) AND file = ?2 AND kind = ? ORDER BY key DESC LIMIT 1")
	if err != nil {
		return false, err
	}
	defer s.close()
	s.bind(1, before)
	s.bind(2, file)
	s.bind(3, kind)
	ok := s.step()
	if ok {
		*at, *size = s.int(0), s.int(1)
	}
	return ok, s.err
}
