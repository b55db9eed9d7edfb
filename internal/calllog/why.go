package calllog

import (
	"iter"
	"slices"
	"strings"
)

// Story is a call with all that the log says about it.
type Story struct {
	// Call is the call's record; the first about it when it was not decided.
	Call Entry
	// Asked are what a person was asked about it, and answered, before it was decided.
	Asked []Entry
	// Rest are the later records with its id: questions asked for it, how it ended.
	Rest []Entry
	// Roots are the directories that were effective when it was decided.
	Roots []Dir
	// Allow are lines, each of which would have allowed what was refused: options, commands, lines of configuration.
	Allow []string
}

// Why tells the story of the call with the short id what; or, when what is a path, of the newest refusals of it and of
// what lies beneath, at most as many as most and the newest first. Entries are unfiltered; an error among them that is
// not an *UnreadableError ends it.
func Why(entries iter.Seq2[Entry, error], what string, most int) ([]Story, error) {
	id := IsID(what)
	if trimmed := strings.TrimRight(what, `/\`); trimmed != "" {
		what = trimmed
	}
	type run struct {
		effective []Dir
		open      map[string]*Story
		asked     map[string][]Entry // about calls that are not decided
	}
	runs := map[string]*run{}
	var stories []*Story
	for e, err := range entries {
		if fatal(err) {
			return nil, err
		}
		if err != nil {
			continue
		}
		r := runs[e.File]
		if r == nil {
			r = &run{open: map[string]*Story{}, asked: map[string][]Entry{}}
			runs[e.File] = r
		}
		switch e.Kind {
		case Start:
			r.effective = e.Dirs
		case RootsChanged:
			r.effective = e.After
		}
		switch story := r.open[e.Call]; {
		case story != nil:
			story.Rest = append(story.Rest, e)
			if e.Verdict == Deny && e.Fix != "" && !slices.Contains(story.Allow, e.Fix) { // what was denied in the course of it
				story.Allow = append(story.Allow, e.Fix)
			}
		case e.Kind == Asked, e.Kind == Answered, e.Kind == End && r.asked[e.Call] != nil:
			r.asked[e.Call] = append(r.asked[e.Call], e)
		case (e.Kind == Call || e.Kind == Note && e.Verdict == Deny) && (id && e.Call == what || !id && refuses(&e.Record, what)):
			story = &Story{Call: e, Asked: r.asked[e.Call], Roots: r.effective, Allow: allowing(&e.Record, r.effective)}
			if e.Verdict == Deny && len(story.Asked) > 0 && len(story.Allow) == 0 { // what would have spared the question
				story.Allow = allowing(&story.Asked[0].Record, nil)
			}
			stories = append(stories, story)
			if e.Call != "" {
				r.open[e.Call] = story
			}
		}
		if e.Kind == Call {
			delete(r.asked, e.Call)
		}
		if len(stories) > most {
			old := stories[0]
			delete(runs[old.Call.File].open, old.Call.Call)
			stories = slices.Delete(stories, 0, 1)
		}
	}
	if len(stories) == 0 && id { // it was never decided: it waits, or was cancelled
		for _, r := range runs {
			if asked := r.asked[what]; len(asked) > 0 {
				stories = append(stories, &Story{Call: asked[0], Rest: asked[1:], Roots: r.effective, Allow: allowing(&asked[0].Record, nil)})
			}
		}
	}
	var out []Story
	for _, s := range slices.Backward(stories) {
		out = append(out, *s)
	}
	return out, nil
}

// IsID reports whether s is written as NewID writes.
func IsID(s string) bool {
	return len(s) == 6 && strings.Trim(s, hexDigits) == ""
}

// refuses reports whether r refuses path or something beneath it.
func refuses(r *Record, path string) bool {
	return r.Verdict == Deny && slices.ContainsFunc(r.Paths, func(p Path) bool {
		return p.Verdict == Deny && (beneath(p.Resolved, path) || beneath(p.Given, path))
	})
}

// beneath reports whether path is dir or lies below it, by text. It is for finding records, not for access.
func beneath(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\' || strings.HasSuffix(dir, "/") || strings.HasSuffix(dir, `\`))
}

// allowing returns the lines that would allow what r refuses.
func allowing(r *Record, effective []Dir) []string {
	var lines []string
	add := func(line string) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if r.Fix != "" { // who refused it knows better what would have allowed it
		return strings.Split(r.Fix, "\n")
	}
	for _, p := range r.Paths {
		if r.Verdict != Deny || p.Verdict != Deny || p.Resolved == "" {
			continue
		}
		switch p.Code {
		case CodeOutside, CodeNoRoots:
			dir := p.Resolved
			if !p.Dir {
				dir = parent(dir)
			}
			add("--root " + shellQuote(dir))
			add("rootbound roots add " + shellQuote(dir))
		case CodeReadOnly:
			dir := ""
			for _, d := range effective {
				if beneath(p.Resolved, d.Path) && len(d.Path) > len(dir) {
					dir = d.Path
				}
			}
			if dir != "" {
				add("--root " + shellQuote(dir) + " instead of --ro " + shellQuote(dir))
			}
		}
	}
	return lines
}

// parent returns the directory that holds path, or path where that would be all there is.
func parent(path string) string {
	i := strings.LastIndexAny(path, `/\`)
	if i <= 0 || path[i-1] == ':' {
		return path
	}
	return path[:i]
}

// shellQuote returns s as a word of a POSIX shell.
func shellQuote(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r < 0x80 && class[r] == separator && !strings.ContainsRune(".,:@%=", r)
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
