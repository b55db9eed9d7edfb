package pin

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/rootbound/rootbound/internal/statefile"
)

// Outcome is what came of a definition that was seen.
type Outcome uint8

const (
	// Held: what it is of is not to be used until a person looked.
	Held Outcome = iota
	// Same: it is as pinned.
	Same
	// First: it was seen for the first time, and is pinned now.
	First
	// Reworded: it differs in words, and is pinned anew.
	Reworded
)

// Sight is a definition that was seen, and what came of it.
type Sight struct {
	Definition
	Outcome Outcome
	// Pinned is what is pinned; without a Text when nothing is.
	Pinned Definition
	// Changes are how it differs from what was pinned, or what is wrong with it at first sight.
	Changes []Change
	// Why is set instead for one that is held for another reason.
	Why string
	// New is set when it was not seen like this before.
	New bool
}

// Reason says in a few words why it is held.
func (s Sight) Reason() string {
	if s.Why != "" {
		return s.Why
	}
	if r := Reasons(s.Changes); len(r) > 0 {
		return r[0]
	}
	return "it waits for a person"
}

// maxPins is how many definitions of one server are kept.
const maxPins = 5_000

// Pins is what one guard knows of one server's definitions. It is safe for concurrent use.
type Pins struct {
	store Store
	owner Owner

	seeing sync.Mutex // held while something that was seen is judged and written

	mu      sync.RWMutex
	begun   bool
	stamps  [2]statefile.Stamp
	err     error
	pinned  map[string]Definition
	waiting map[string]Definition
	seen    map[string]Sight // the last sight of each
	held    map[string]Sight // what is not to be used now
	crowded bool             // there were more than are kept
	local   map[string]bool  // pinned here alone, since it could not be written

	released []Definition // what was held and is not any more, in order, without its text: this only grows
	told     int          // how many of them somebody was told of
}

// NewPins returns a view of what store has of a server.
func NewPins(store Store, owner Owner) *Pins {
	return &Pins{store: store, owner: owner, pinned: map[string]Definition{}, waiting: map[string]Definition{}, seen: map[string]Sight{},
		held: map[string]Sight{}, local: map[string]bool{}}
}

// Held returns the sight for which something is not to be used. While nothing is held it looks at nothing but memory; else
// at the files, since a person may have looked.
func (p *Pins) Held(kind Kind, name string) (Sight, bool) {
	key := Definition{Kind: kind, Name: name}.Key()
	p.mu.RLock()
	_, held := p.held[key]
	held = held || !p.begun || p.err != nil || p.crowded
	p.mu.RUnlock()
	if !held {
		return Sight{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look()
	if p.err != nil {
		return Sight{Definition: Definition{Kind: kind, Name: name}, Why: unreadable}, true
	}
	if s, held := p.held[key]; held {
		return s, true
	}
	if _, known := p.pinned[key]; p.crowded && !known {
		return Sight{Definition: Definition{Kind: kind, Name: name}, Why: tooMany}, true
	}
	return Sight{}, false
}

// tooMany is why one is held that came when there was no room for more.
const tooMany = "the server has too many of them"

// unreadable is why everything is held when the files cannot be read.
const unreadable = "the pins cannot be read"

// Look looks at the files when they changed, and returns what was released behind the since-th release, by kind and name, how many
// there were now, and whether nobody was told of the last one before: several guards may share a view, and each tells its own clients.
func (p *Pins) Look(since int) (released []Definition, now int, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look()
	now = len(p.released)
	released, first = slices.Clone(p.released[min(since, now):]), p.told < now
	p.told = now
	return released, now, first
}

// Released returns how many definitions were released so far.
func (p *Pins) Released() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.released)
}

// look reads the files when they changed. The caller holds mu.
func (p *Pins) look() {
	now := [2]statefile.Stamp{statefile.StampOf(p.store.Pins), statefile.StampOf(p.store.Waiting)}
	if p.begun && now == p.stamps {
		return
	}
	p.begun, p.stamps = true, now
	c, err := p.store.read()
	p.take(c, err)
}

// take takes over what the files say, and notes what is released by that.
func (p *Pins) take(c contents, err error) {
	was := p.held
	if p.err = err; err == nil {
		maps.DeleteFunc(p.seen, func(_ string, s Sight) bool { return s.Why == unreadable })
		pinned := map[string]Definition{}
		for _, e := range c.pinned {
			if e.Owner == p.owner {
				pinned[e.Key()] = e.Definition
			}
		}
		for key := range p.local { // what is not in the file is only known here
			if _, ok := pinned[key]; !ok {
				pinned[key] = p.pinned[key]
			} else {
				delete(p.local, key)
			}
		}
		p.pinned = pinned
		p.waiting = map[string]Definition{}
		for _, e := range c.waiting {
			if e.Owner == p.owner && e.For == p.store.Pins {
				p.waiting[e.Key()] = e.Definition
			}
		}
	}
	p.crowded = p.crowded && p.full("")
	p.hold()
	for key, s := range was {
		if _, held := p.held[key]; !held {
			p.released = append(p.released, Definition{Kind: s.Kind, Name: s.Name})
		}
	}
}

// full reports whether there is no room for one that is not known yet.
func (p *Pins) full(key string) bool {
	_, waits := p.waiting[key]
	_, seen := p.seen[key]
	return !waits && !seen && max(len(p.pinned)+len(p.waiting), len(p.seen)) >= maxPins
}

// hold computes anew what is held. It is a new map, since others may read the old one.
func (p *Pins) hold() {
	held := map[string]Sight{}
	for key, s := range p.seen {
		if s.Outcome == Held && !bytes.Equal(s.Text, p.pinned[key].Text) {
			held[key] = s
		}
	}
	for key, d := range p.waiting {
		if _, seen := p.seen[key]; !seen && !bytes.Equal(d.Text, p.pinned[key].Text) {
			held[key] = p.judge(d)
		}
	}
	p.held = held
}

// judge compares a definition with what is pinned.
func (p *Pins) judge(d Definition) Sight {
	key := d.Key()
	pinned, known := p.pinned[key]
	s := Sight{Definition: d, Pinned: pinned}
	switch {
	case p.err != nil:
		s.Why = unreadable
	case known && bytes.Equal(pinned.Text, d.Text):
		s.Outcome = Same
	case known:
		if s.Changes = Compare(pinned, d); !Dangerous(s.Changes) {
			s.Outcome = Reworded
		}
	case p.full(key):
		s.Why = tooMany
	default:
		if s.Changes = Suspicious(d); len(s.Changes) == 0 {
			s.Outcome = First
		}
	}
	last, seen := p.seen[key]
	s.New = !seen && s.Outcome != Same || seen && (last.Outcome != s.Outcome || !bytes.Equal(last.Text, d.Text))
	return s
}

// See takes what a server says, and returns what came of each, in their order. What is seen first or differs in words is
// pinned, what is held waits in the store. An error says that it could not be written, or that the pins could not be read.
// It then holds for this guard all the same, and with pins that cannot be read everything is held.
func (p *Pins) See(defs []Definition) ([]Sight, error) {
	p.seeing.Lock()
	defer p.seeing.Unlock()
	p.mu.Lock()
	p.look()
	sights, write := p.sights(defs)
	if !write || p.err != nil {
		defer p.mu.Unlock()
		err := p.err
		p.note(sights)
		return sights, err
	}
	p.mu.Unlock() // whoever asks what is held does not wait for another process that has the files
	err := p.store.edit(func(c *contents) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.take(*c, nil) // another guard may have been faster
		sights, _ = p.sights(defs)
		gone := map[id]bool{} // there may be thousands: nothing is looked for in a list
		var pinned, waiting []Entry
		for _, s := range sights {
			e := Entry{Owner: p.owner, Definition: s.Definition, Since: now()}
			w := e
			w.For = p.store.Pins
			switch s.Outcome {
			case First, Reworded:
				if !gone[e.id()] {
					pinned = append(pinned, e)
				}
				gone[e.id()], gone[w.id()] = true, true
			case Same:
				gone[w.id()] = true
			case Held:
				if d, ok := p.waiting[s.Key()]; s.Why == "" && !gone[w.id()] && (!ok || !bytes.Equal(d.Text, s.Text)) {
					gone[w.id()] = true
					waiting = append(waiting, w)
				}
			}
		}
		old := func(e Entry) bool { return gone[e.id()] }
		c.pinned = append(slices.DeleteFunc(c.pinned, old), pinned...)
		c.waiting = append(slices.DeleteFunc(c.waiting, old), waiting...)
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range sights {
		if s.Outcome == First || s.Outcome == Reworded {
			p.pinned[s.Key()] = s.Definition
			if err != nil {
				p.local[s.Key()] = true
			}
		}
	}
	p.note(sights)
	if err == nil {
		p.stamps = [2]statefile.Stamp{}
		p.look()
	}
	return sights, err
}

// sights judges definitions, and reports whether something is to be written.
func (p *Pins) sights(defs []Definition) (sights []Sight, write bool) {
	first := map[string]Definition{}
	for _, d := range defs {
		s := p.judge(d)
		if o, twice := first[d.Key()]; twice && !bytes.Equal(o.Text, d.Text) {
			s.Outcome, s.Changes, s.Why = Held, nil, "it is listed twice, and not in the same way"
			for i := range sights {
				if sights[i].Key() == d.Key() {
					sights[i].Outcome, sights[i].Changes, sights[i].Why = s.Outcome, nil, s.Why
				}
			}
		}
		first[d.Key()] = d
		sights = append(sights, s)
	}
	for _, s := range sights {
		w, waits := p.waiting[s.Key()]
		switch s.Outcome {
		case First, Reworded:
			write = true
		case Same:
			write = write || waits
		case Held:
			write = write || s.Why == "" && (!waits || !bytes.Equal(w.Text, s.Text))
		}
	}
	return sights, write
}

// note remembers sights.
func (p *Pins) note(sights []Sight) {
	for i, s := range sights {
		if s.Why == tooMany { // of which there may be any number
			sights[i].New = !p.crowded
			p.crowded = true
			continue
		}
		p.seen[s.Key()] = s
	}
	p.hold()
}
