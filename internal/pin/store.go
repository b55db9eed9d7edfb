package pin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/statefile"
	"github.com/rootbound/rootbound/internal/unseen"
)

// Owner is whose definition it is: the name that people use for a server, and what runs, since two may share a name.
type Owner struct{ Server, Runs string }

// Entry is a definition that is kept.
type Entry struct {
	Owner
	Definition
	// Since is when it was seen first, or accepted.
	Since time.Time
	// For is set for one that waits for a person: the file that it is to be in.
	For string
	// Reviewed is set when a person was shown how one that waits differs, and Refused when that person said no to it as it is:
	// it stays held, and waits for nobody.
	Reviewed, Refused bool
}

// id tells entries apart.
type id struct {
	Owner
	kind       Kind
	name, file string
}

func (e Entry) id() id { return id{e.Owner, e.Kind, e.Name, e.For} }

// same reports whether two entries are of one thing.
func (e Entry) same(o Entry) bool { return e.id() == o.id() }

// Store is where definitions are kept. It is safe for concurrent use, also by several processes.
type Store struct {
	// Pins is the file of what is pinned, which people may keep among their own and review. It need not be there.
	Pins string
	// Waiting is the file of what waits for a person, for every file of pins.
	Waiting string
	// Lock is the file that whoever changes one of the two holds locked.
	Lock string
}

// In is the store that has its pins in another file.
func (s Store) In(file string) Store {
	s.Pins = file
	return s
}

// contents are those of both files.
type contents struct{ pinned, waiting []Entry }

// Pinned returns what is pinned.
func (s Store) Pinned() ([]Entry, error) { return load(s.Pins) }

// Waits returns what waits for a person, for every file of pins, and what one refused.
func (s Store) Waits() ([]Entry, error) { return load(s.Waiting) }

// Review is how something that waits differs from what is pinned.
type Review struct {
	Entry
	// First is set for what was never accepted; then there are no Changes, and Reasons says what is wrong with it.
	First   bool
	Before  Entry
	Changes []Change
	Reasons []string
}

// Review returns how each of those that wait differs from what is pinned.
func (s Store) Review(waiting []Entry) ([]Review, error) {
	var list []Review
	pinned := map[string][]Entry{} // by file
	for _, e := range waiting {
		all, ok := pinned[e.For]
		if !ok {
			var err error
			if all, err = s.In(e.For).Pinned(); err != nil {
				return nil, err
			}
			pinned[e.For] = all
		}
		r := Review{Entry: e}
		if i := slices.IndexFunc(all, func(o Entry) bool { return o.Owner == e.Owner && o.Key() == e.Key() }); i >= 0 {
			r.Before, r.Changes = all[i], Compare(all[i].Definition, e.Definition)
			r.Reasons = Reasons(r.Changes)
		} else {
			r.First, r.Reasons = true, Reasons(Suspicious(e.Definition))
		}
		list = append(list, r)
	}
	return list, nil
}

func (s Store) read() (contents, error) {
	var c contents
	var err error
	if c.pinned, err = s.Pinned(); err == nil {
		c.waiting, err = s.Waits()
	}
	return c, err
}

// Reviewed notes that a person was shown these, as they are given.
func (s Store) Reviewed(shown []Entry) error {
	return s.edit(func(c *contents) error {
		for i := range c.waiting {
			w := &c.waiting[i]
			if slices.ContainsFunc(shown, func(e Entry) bool { return e.same(*w) && bytes.Equal(e.Text, w.Text) }) {
				w.Reviewed = true
			}
		}
		return nil
	})
}

// ErrNotReviewed is why something is not accepted that nobody was shown, or that changed since.
var ErrNotReviewed = errors.New("it was not reviewed as it is now")

// Accept pins what waits for s.Pins and for which match is true, and returns it. If one of them was not reviewed nothing is
// accepted, and the error is ErrNotReviewed.
func (s Store) Accept(match func(Entry) bool) ([]Entry, error) {
	var accepted []Entry
	err := s.edit(func(c *contents) error {
		for _, e := range c.waiting {
			if e.For != s.Pins || !match(e) {
				continue
			}
			if !e.Reviewed {
				return ErrNotReviewed
			}
			accepted = append(accepted, e)
		}
		for _, e := range accepted {
			c.waiting = without(c.waiting, e)
			e.For, e.Reviewed, e.Refused, e.Since = "", false, false, now()
			c.pinned = append(without(c.pinned, e), e)
		}
		return nil
	})
	return accepted, err
}

// Refuse says no to what waits for s.Pins as it is and for which match is true, and returns that: it stays held, and what the server
// says next waits again when it is another thing. Like Accept it is for what was reviewed.
func (s Store) Refuse(match func(Entry) bool) ([]Entry, error) {
	var refused []Entry
	err := s.edit(func(c *contents) error {
		for i := range c.waiting {
			e := &c.waiting[i]
			if e.For != s.Pins || e.Refused || !match(*e) {
				continue
			}
			if !e.Reviewed {
				return ErrNotReviewed
			}
			e.Refused = true
			refused = append(refused, *e)
		}
		return nil
	})
	return refused, err
}

// Forget takes back what is pinned in s.Pins, and what waits for it, for which match is true, and returns that. It is pinned
// anew when it is seen next.
func (s Store) Forget(match func(Entry) bool) ([]Entry, error) {
	var gone []Entry
	err := s.edit(func(c *contents) error {
		drop := func(e Entry) bool {
			if (e.For == "" || e.For == s.Pins) && match(e) {
				gone = append(gone, e)
				return true
			}
			return false
		}
		c.pinned, c.waiting = slices.DeleteFunc(c.pinned, drop), slices.DeleteFunc(c.waiting, drop)
		return nil
	})
	return gone, err
}

func without(list []Entry, e Entry) []Entry {
	return slices.DeleteFunc(list, func(o Entry) bool { return o.same(e) })
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// edit changes the files, alone among all who do. With an error of f they stay as they are.
func (s Store) edit(f func(*contents) error) error {
	var changed error
	if err := statefile.Locked(s.Lock, func() error { changed = s.change(f); return nil }); err != nil {
		return fmt.Errorf("writing pins: %w", err)
	}
	return changed
}

func (s Store) change(f func(*contents) error) error {
	c, err := s.read()
	if err != nil {
		return err
	}
	before := [2][]byte{format(c.pinned), format(c.waiting)}
	if err := f(&c); err != nil {
		return err
	}
	// Pins go first: if the second cannot be written, something waits that is pinned, which is nothing that waits.
	for i, file := range []struct {
		path    string
		entries []Entry
	}{{s.Pins, c.pinned}, {s.Waiting, c.waiting}} {
		text := format(file.entries)
		if bytes.Equal(text, before[i]) {
			continue
		}
		if err := statefile.Replace(file.path, text); err != nil {
			return fmt.Errorf("writing pins: %w", err)
		}
	}
	return nil
}

// file is how entries are written.
type file struct {
	Pins []record `json:"pins"`
}

type record struct {
	Server     string          `json:"server"`
	Runs       string          `json:"runs"`
	Kind       Kind            `json:"kind"`
	Name       string          `json:"name,omitempty"`
	Since      time.Time       `json:"since"`
	For        string          `json:"for,omitempty"`
	Reviewed   bool            `json:"reviewed,omitempty"`
	Refused    bool            `json:"refused,omitempty"`
	Definition json.RawMessage `json:"definition"`
}

// format writes entries, sorted, for people who compare. What is not seen is escaped.
func format(entries []Entry) []byte {
	list := slices.SortedFunc(slices.Values(entries), func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Runs, b.Runs), strings.Compare(a.Key(), b.Key()), strings.Compare(a.For, b.For))
	})
	f := file{Pins: []record{}}
	for _, e := range list {
		f.Pins = append(f.Pins, record{e.Server, e.Runs, e.Kind, e.Name, e.Since, e.For, e.Reviewed, e.Refused, e.Text})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		panic("bug: writing pins: " + err.Error()) // the texts are JSON, since they were read as such
	}
	return []byte(unseen.JSON(b.String()))
}

// load reads a file. One that is not there has no entries.
func load(path string) ([]Entry, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading pins: %w", err)
	}
	entries, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading pins: %s: %w: mend the file or remove it; until then nothing is as pinned", path, err)
	}
	return entries, nil
}

func parse(text []byte) ([]Entry, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("there is something behind the pins")
	}
	var entries []Entry
	seen := map[id]bool{}
	for _, r := range f.Pins {
		if !slices.Contains([]Kind{Server, Tool, Prompt, Template}, r.Kind) || len(r.Definition) == 0 || r.Definition[0] != '{' {
			return nil, fmt.Errorf("%q of %q is no pin", r.Name, r.Server)
		}
		e := Entry{Owner{r.Server, r.Runs}, New(r.Kind, r.Name, r.Definition), r.Since, r.For, r.Reviewed, r.Refused}
		if seen[e.id()] {
			return nil, fmt.Errorf("%s of %q is pinned twice", e.Definition, r.Server)
		}
		seen[e.id()] = true
		entries = append(entries, e)
	}
	return entries, nil
}
