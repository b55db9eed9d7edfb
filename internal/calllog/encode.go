package calllog

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

const (
	maxPaths = 128     // paths of a record that are written
	maxKept  = 1 << 20 // bytes of a buffer that is used again
)

const (
	secondLayout = "2006-01-02T15:04:05."
	timeLayout   = secondLayout + "000000Z"
	nameLayout   = "20060102T150405.000000Z" // in names of files
)

// encoder writes records as lines. Everything a record holds goes through redaction.
type encoder struct {
	walker walker
	buf    []byte
	text   []byte

	second int64  // of the time that was written last, in Unix time
	begin  []byte // how such a time begins
}

// line returns r as a line that follows the record with hash prev, and its own hash. The line is good until the next
// call.
func (e *encoder) line(r *Record, seq uint64, now time.Time, server string, prev digits) (line []byte, hash digits) {
	if cap(e.buf) > maxKept {
		e.buf, e.walker.text = nil, nil
	}
	e.buf = strconv.AppendUint(append(e.buf[:0], `{"seq":`...), seq, 10)
	e.time(now)
	e.str("kind", string(r.Kind))
	e.str("server", server)
	e.str("session", r.Session)

	e.str("version", r.Version)
	e.int("pid", int64(r.PID))
	e.strs("command", RedactArgs(r.Command))
	e.str("cwd", r.Cwd)
	e.strs("env", names(r.Env))
	e.dirs("dirs", r.Dirs)
	e.str("client_roots", r.ClientRoots)
	e.strs("layers", r.Layers)
	e.int("status", int64(r.Status))

	e.str("call", r.Call)
	e.json("id", r.ID)
	e.str("method", r.Method)
	e.str("tool", r.Tool)
	e.str("verdict", string(r.Verdict))
	e.str("code", r.Code)
	e.str("reason", r.Reason)
	e.str("fix", r.Fix)
	e.str("rule", r.Rule)
	e.json("args", r.Args)
	e.paths(r.Paths, r.PathsOmitted)

	e.str("outcome", string(r.Outcome))
	if r.MS > 0 {
		e.name("ms")
		e.buf = strconv.AppendFloat(e.buf, min(r.MS, 1e15), 'f', -1, 64)
	}
	e.int("bytes", r.Bytes)
	e.str("text", r.Text)

	e.str("from", string(r.From))
	e.str("to", string(r.To))
	e.str("ask", r.Ask)
	e.roots(r.Roots)
	if r.Equal != nil {
		e.name("equal")
		e.buf = strconv.AppendBool(e.buf, *r.Equal)
	}
	e.dirs("before", r.Before)
	e.dirs("after", r.After)

	e.name("prev")
	e.buf = append(append(append(e.buf, '"'), prev[:]...), '"')
	hash = digest(e.buf)
	e.name("hash")
	e.buf = append(append(append(e.buf, '"'), hash[:]...), "\"}\n"...)
	return e.buf, hash
}

// digest returns the SHA-256 of what a hash covers.
func digest(b []byte) (hash digits) {
	sum := sha256.Sum256(b)
	hex.Encode(hash[:], sum[:])
	return hash
}

// names cuts assignments down to the names of the variables.
func names(env []string) []string {
	var out []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		out = append(out, name)
	}
	return out
}

// name begins a member. A comma comes first unless an object was just opened.
func (e *encoder) name(name string) {
	if e.buf[len(e.buf)-1] != '{' {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(append(append(e.buf, '"'), name...), `":`...)
}

// time writes when the record is made, in timeLayout.
func (e *encoder) time(now time.Time) {
	if second := now.Unix(); e.begin == nil || second != e.second {
		e.begin, e.second = now.UTC().AppendFormat(e.begin[:0], secondLayout), second
	}
	e.buf = append(append(e.buf, `,"time":"`...), e.begin...)
	micros := now.Nanosecond() / 1000
	for unit := 100_000; unit > 0; unit /= 10 {
		e.buf = append(e.buf, byte('0'+micros/unit%10))
	}
	e.buf = append(e.buf, `Z"`...)
}

// short reports whether s is a word of the protocol or of ours: it is its own quotation, and nothing in it can be a secret.
func short(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case class[c] == upper, class[c] == lower, class[c] == digit, c == '_', c == '/', c == '.':
		default:
			return false
		}
	}
	return len(s) < minShaped
}

func (e *encoder) quote(s string) {
	if short(s) {
		e.buf = append(append(append(e.buf, '"'), s...), '"')
		return
	}
	e.text = append(e.text[:0], s...)
	e.buf = appendRedacted(e.buf, e.text, maxText)
}

func (e *encoder) str(name, s string) {
	if s != "" {
		e.name(name)
		e.quote(s)
	}
}

func (e *encoder) int(name string, n int64) {
	if n != 0 {
		e.name(name)
		e.buf = strconv.AppendInt(e.buf, n, 10)
	}
}

func (e *encoder) bool(name string, b bool) {
	if b {
		e.name(name)
		e.buf = append(e.buf, "true"...)
	}
}

func (e *encoder) json(name string, raw []byte) {
	if len(raw) > 0 {
		e.name(name)
		e.buf = e.walker.appendJSON(e.buf, raw)
	}
}

// list writes a list of n elements unless it is empty.
func (e *encoder) list(name string, n int, element func(i int)) {
	if n == 0 {
		return
	}
	e.name(name)
	e.buf = append(e.buf, '[')
	for i := range n {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		element(i)
	}
	e.buf = append(e.buf, ']')
}

func (e *encoder) strs(name string, s []string) {
	e.list(name, len(s), func(i int) { e.quote(s[i]) })
}

func (e *encoder) dirs(name string, dirs []Dir) {
	e.list(name, len(dirs), func(i int) {
		d := &dirs[i]
		e.buf = append(e.buf, '{')
		e.str("name", d.Name)
		e.name("path")
		e.quote(d.Path)
		e.str("access", d.Access)
		e.bool("pinned", d.Pinned)
		e.str("origin", d.Origin)
		e.buf = append(e.buf, '}')
	})
}

func (e *encoder) roots(roots []Root) {
	e.list("roots", len(roots), func(i int) {
		e.buf = append(e.buf, '{')
		e.name("uri")
		e.quote(roots[i].URI)
		e.str("name", roots[i].Name)
		e.buf = append(e.buf, '}')
	})
}

func (e *encoder) paths(paths []Path, omitted int) {
	if len(paths) > maxPaths {
		omitted += len(paths) - maxPaths
		paths = refusedFirst(paths)[:maxPaths]
	}
	e.list("paths", len(paths), func(i int) {
		p := &paths[i]
		e.buf = append(e.buf, '{')
		e.name("arg")
		e.quote(p.Arg)
		e.str("given", p.Given)
		e.str("resolved", p.Resolved)
		e.bool("dir", p.Dir)
		e.str("root", p.Root)
		e.str("rel", p.Rel)
		e.str("verdict", string(p.Verdict))
		e.str("code", p.Code)
		e.buf = append(e.buf, '}')
	})
	e.int("paths_omitted", int64(omitted))
}

// refusedFirst returns the paths with those in front that stood in the way.
func refusedFirst(paths []Path) []Path {
	out := make([]Path, 0, len(paths))
	for _, p := range paths {
		if p.Verdict == Deny || p.Verdict == Ask {
			out = append(out, p)
		}
	}
	for _, p := range paths {
		if p.Verdict != Deny && p.Verdict != Ask {
			out = append(out, p)
		}
	}
	return out
}
