package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// DefaultWait is how long a question waits for a person.
	DefaultWait = 5 * time.Minute
	// keepFor is how long the answer to a call is kept that was told to come again.
	keepFor = 10 * time.Minute
	// maxOpen is how many calls of a session wait for a person at once, maxRate how many questions it asks in a minute, and
	// maxHeld how many calls wait while everything does.
	maxOpen = 32
	maxRate = 60
	maxHeld = 1024
	// maxKept is how many answers are kept for calls that come again, and maxLeft how many ids of such calls for a question.
	maxKept = 1024
	maxLeft = 64
)

// DeskOptions of a desk. The zero value is usable.
type DeskOptions struct {
	// Wait is how long a question waits for a person; 0 is DefaultWait.
	Wait time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Desk holds the questions of one guard. It is safe for concurrent use.
type Desk struct {
	wait time.Duration
	now  func() time.Time

	mu      sync.Mutex
	paused  bool
	open    []*item // the oldest first
	kept    map[string]kept
	asked   map[string][]time.Time // when questions of a session were asked in the last minute
	changed chan struct{}          // closed with the next change
}

// kept is an answer to a call that was told to come again.
type kept struct {
	answer Answer
	at     time.Time
}

// Call is a call that waits for a person.
type Call struct {
	Question Question
	// Key is the same for calls that are one question: who, what, and with which arguments.
	Key string
	// Session is whose flood of questions has an end.
	Session string
	// Asked, if set, is called when it is this call that the person is asked about: at once, or when those before it, which
	// are the same, are done. It gets what it waits by.
	Asked func(*Waiting)
	// Answered is called once, unless the call leaves with Later.
	Answered func(Answer)
	// Change, if set, says what the question would be if the arguments were others, or why that is refused. It may be called
	// from any goroutine, and changes nothing.
	Change func(args []byte) (Question, error)
}

// Waiting is a call that waits at a desk.
type Waiting struct {
	desk *Desk
	call Call
	ctx  context.Context
	stop func() bool // ends the watch over ctx
	item *item       // nil when it is over
}

// item is one question, with the calls that it is for.
type item struct {
	Question
	key, session string
	lead         *Waiting // nil when its call was told to come again
	behind       []*Waiting
	left         []string // the ids of calls that were told to come again: a person may have read them
	timer        *time.Timer
}

// NewDesk returns a desk with no questions.
func NewDesk(o DeskOptions) *Desk {
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Desk{wait: o.Wait, now: o.Now, kept: map[string]kept{}, asked: map[string][]time.Time{}, changed: make(chan struct{})}
}

// Wait is how long a question waits.
func (d *Desk) Wait() time.Duration { return d.wait }

// Ask holds a call until a person answers, time ends or ctx is done. Calls with the same key are one question: one that
// comes while another waits stands behind it. A no to one is a no to all; a yes for once is for the first of them, and the
// next is asked about then.
func (d *Desk) Ask(ctx context.Context, c Call) {
	d.mu.Lock()
	now := d.now()
	if k, ok := d.kept[c.Key]; ok {
		delete(d.kept, c.Key)
		if age := wall(now).Sub(wall(k.at)); age >= 0 && age < keepFor {
			d.mu.Unlock()
			c.Answered(k.answer)
			return
		}
	}
	w := &Waiting{desk: d, call: c, ctx: ctx}
	it := d.find(func(it *item) bool { return it.key == c.Key && !it.Paused })
	switch {
	case d.waiting(c.Session) >= maxOpen, it == nil && d.rate(c.Session, now) >= maxRate:
		d.mu.Unlock()
		c.Answered(Answer{Road: Flooded})
		return
	case it == nil:
		it = &item{key: c.Key, session: c.Session}
		d.open = append(d.open, it)
		d.asked[c.Session] = append(d.asked[c.Session], now)
		d.lead(it, w, now)
	case it.lead == nil: // it was told to come again, and here it is
		d.lead(it, w, now)
	default:
		it.behind = append(it.behind, w)
		w.item = it
	}
	leads := it.lead == w
	d.tell()
	d.mu.Unlock()
	w.watch(leads)
}

// Hold holds a call for as long as the guard is paused, and reports whether it is.
func (d *Desk) Hold(ctx context.Context, c Call) bool {
	d.mu.Lock()
	if !d.paused {
		d.mu.Unlock()
		return false
	}
	held := 0
	for _, it := range d.open {
		if it.Paused {
			held++
		}
	}
	if held >= maxHeld {
		d.mu.Unlock()
		c.Answered(Answer{Road: Flooded})
		return true
	}
	w := &Waiting{desk: d, call: c, ctx: ctx}
	it := &item{Question: c.Question, key: c.Key, session: c.Session, lead: w}
	it.Paused, it.Asked, it.Until = true, d.now(), time.Time{}
	w.item = it
	d.open = append(d.open, it)
	d.tell()
	d.mu.Unlock()
	w.watch(true)
	return true
}

// lead makes w the call that a person is asked about. The caller holds mu.
func (d *Desk) lead(it *item, w *Waiting, now time.Time) {
	it.lead, w.item = w, it
	it.Question = w.call.Question
	it.Asked, it.Until = now, now.Add(d.wait)
	if it.timer != nil {
		it.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(d.wait, func() {
		d.end(it, Answer{Road: TimedOut}, func() bool { return it.timer == timer })
	})
	it.timer = timer
}

// watch withdraws w when its context ends, and says that it is asked.
func (w *Waiting) watch(leads bool) {
	stop := context.AfterFunc(w.ctx, w.withdraw)
	w.desk.mu.Lock()
	w.stop = stop
	leads = leads && w.item != nil
	w.desk.mu.Unlock()
	if leads {
		w.ask()
	}
}

// Answer answers what w waits for, and reports whether it was the first to do so.
func (w *Waiting) Answer(a Answer) bool {
	w.desk.mu.Lock()
	it := w.item
	w.desk.mu.Unlock()
	return it != nil && w.desk.end(it, a, func() bool { return it.lead == w })
}

// Later takes the call away from its question, which stays: it was told to come again with the same arguments, and gets the
// answer then. It reports whether the question was still open.
func (w *Waiting) Later() bool {
	next, waited := w.leave(true)
	next.ask()
	return waited
}

// withdraw takes away a call whose client does not wait for it any more.
func (w *Waiting) withdraw() {
	next, waited := w.leave(false)
	if waited {
		w.call.Answered(Answer{Road: Withdrawn})
	}
	next.ask()
}

// leave takes the call away from its question, and reports whether it waited. Next is the one that is asked about now. Where
// there is none the question ends, or stays for a call that comes again.
func (w *Waiting) leave(again bool) (next *Waiting, waited bool) {
	d := w.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	it := w.item
	if it == nil {
		return nil, false
	}
	w.item = nil
	if w.stop != nil {
		w.stop()
	}
	if again {
		it.left = append(it.left[max(0, len(it.left)+1-maxLeft):], w.call.Question.ID)
	}
	switch {
	case it.lead != w:
		it.behind = slices.DeleteFunc(it.behind, func(o *Waiting) bool { return o == w })
	case again && len(it.behind) == 0:
		it.lead = nil
	default:
		next = d.advance(it)
	}
	d.tell()
	return next, true
}

// ask says that it is this call that a person is asked about; of none there is nothing to say.
func (w *Waiting) ask() {
	if w != nil && w.call.Asked != nil {
		w.call.Asked(w)
	}
}

// advance makes the next call behind the lead the one that is asked about, or ends the question when there is none. The
// caller holds mu.
func (d *Desk) advance(it *item) (next *Waiting) {
	if len(it.behind) == 0 {
		d.remove(it)
		return nil
	}
	next = it.behind[0]
	it.behind = it.behind[1:]
	d.lead(it, next, d.now())
	return next
}

func (d *Desk) remove(it *item) {
	if it.timer != nil {
		it.timer.Stop()
		it.timer = nil
	}
	d.open = slices.DeleteFunc(d.open, func(o *item) bool { return o == it })
}

// end ends a question, and reports whether it was open and is still the one that is meant.
func (d *Desk) end(it *item, a Answer, meant func() bool) bool {
	d.mu.Lock()
	if !slices.Contains(d.open, it) || !meant() {
		d.mu.Unlock()
		return false
	}
	now := wall(d.now())
	// The timer does not follow the clock, and a person reads the clock: where the two disagree nobody knows what was in time.
	if late := !it.Until.IsZero() && now.After(wall(it.Until).Add(time.Second)); a.Allow && a.Road != Resumed && (late || now.Before(wall(it.Asked).Add(-time.Second))) {
		a = Answer{Road: ClockMoved, Who: a.Who}
	}
	var answered []*Waiting
	var next *Waiting
	if it.lead != nil {
		answered = append(answered, it.lead)
	} else {
		d.keep(it.key, a)
	}
	if a.Allow && a.Once() {
		if it.lead != nil {
			it.lead.item = nil
		}
		next = d.advance(it)
	} else {
		answered = append(answered, it.behind...)
		d.remove(it)
	}
	for _, w := range answered {
		w.item = nil
		if w.stop != nil {
			w.stop()
		}
	}
	d.tell()
	d.mu.Unlock()
	for _, w := range answered {
		w.call.Answered(a)
	}
	next.ask()
	return true
}

// keep keeps the answer to a call that was told to come again. The caller holds mu.
func (d *Desk) keep(key string, a Answer) {
	now := d.now()
	for k, v := range d.kept {
		if age := wall(now).Sub(wall(v.at)); age < 0 || age >= keepFor {
			delete(d.kept, k)
		}
	}
	if len(d.kept) < maxKept {
		d.kept[key] = kept{a, now}
	}
}

// wall is a time as the clock shows it, which may be set.
func wall(t time.Time) time.Time { return t.Round(0) }

func (d *Desk) find(f func(*item) bool) *item {
	if i := slices.IndexFunc(d.open, f); i >= 0 {
		return d.open[i]
	}
	return nil
}

// waiting counts the calls of a session that wait.
func (d *Desk) waiting(session string) int {
	n := 0
	for _, it := range d.open {
		if it.session == session && !it.Paused {
			n += 1 + len(it.behind)
		}
	}
	return n
}

// rate counts the questions that a session asked within a minute. What is older is forgotten, of every session: over HTTP they
// come and go.
func (d *Desk) rate(session string, now time.Time) int {
	for s, times := range d.asked {
		if times = slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) >= time.Minute }); len(times) == 0 {
			delete(d.asked, s)
		} else {
			d.asked[s] = times
		}
	}
	return len(d.asked[session])
}

// tell wakes whoever watches. The caller holds mu.
func (d *Desk) tell() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// State is what is at a desk.
type State struct {
	Paused    bool       `json:"paused,omitempty"`
	Questions []Question `json:"questions"`
}

// State returns what is at the desk, the oldest question first, and a channel that is closed when that changes.
func (d *Desk) State() (State, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := State{Paused: d.paused, Questions: make([]Question, 0, len(d.open))}
	for _, it := range d.open {
		q := it.Question
		q.Behind = len(it.behind)
		s.Questions = append(s.Questions, q)
	}
	return s, d.changed
}

// Pause holds every call from now on, or lets those that are held go on.
func (d *Desk) Pause(paused bool) {
	d.mu.Lock()
	if d.paused == paused {
		d.mu.Unlock()
		return
	}
	d.paused = paused
	var held []*item
	for _, it := range d.open {
		if it.Paused && !paused {
			held = append(held, it)
		}
	}
	d.tell()
	d.mu.Unlock()
	for _, it := range held {
		d.end(it, Answer{Choice: Choice{Allow: true}, Road: Resumed}, func() bool { return true })
	}
}

// count says whether every call is held, and how many wait for a person, with those behind others.
func (d *Desk) count() (paused bool, waiting int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, it := range d.open {
		waiting += 1 + len(it.behind)
	}
	return d.paused, waiting
}

// Paused reports whether every call is held.
func (d *Desk) Paused() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.paused
}

// ErrNoQuestion is why an answer is to nothing: the question was answered, withdrawn, or there was none.
var ErrNoQuestion = errors.New("no question of that id waits")

// Reply is what a person says to a question.
type Reply struct {
	Choice
	Note string `json:"note,omitempty"`
	// Args are what the arguments are to be instead. A yes to them is for this call alone.
	Args json.RawMessage `json:"args,omitempty"`
	// Page says that it comes from the page and not from a terminal.
	Page bool `json:"page,omitempty"`
	// Digest, if set, is that of the question as it was shown, with the arguments as they were changed. A yes to a call that is
	// another one now is refused.
	Digest string `json:"digest,omitempty"`
}

// ErrChanged is why a yes is refused to a question that is not the one that was shown any more.
var ErrChanged = errors.New("what it names leads elsewhere now, or the tool was changed: look at it again")

// Answer takes a person's answer to the question of a call.
func (d *Desk) Answer(id string, r Reply, road Road, who string) error {
	it, q, lead, err := d.waits(id)
	if err != nil {
		return err
	}
	if r.Allow && r.Once() && d.behind(it, id) {
		return fmt.Errorf("the same call waits before it: answer %s first", q.ID)
	}
	c, err := q.Check(r.Choice)
	if err != nil {
		return err
	}
	a := Answer{Choice: c, Note: r.Note, Road: road, Who: who}
	shown := q
	if a.Allow && r.Args != nil {
		if !c.Once() {
			return errors.New("a yes to other arguments is for this call alone: allow it once")
		}
		if shown, err = lead.change(r.Args); err != nil {
			return err
		}
		a.Args = r.Args
	}
	if a.Allow && r.Digest != "" && r.Digest != shown.Digest {
		return ErrChanged
	}
	if !d.end(it, a, func() bool { return it.lead == lead && it.ID == q.ID }) {
		return ErrNoQuestion
	}
	return nil
}

// Question returns the question of a call, and with args not nil, what it would be if the arguments were these.
func (d *Desk) Question(id string, args []byte) (Question, error) {
	_, q, lead, err := d.waits(id)
	if err == nil && args != nil {
		q, err = lead.change(args)
	}
	return q, err
}

// waits finds the question of a call as it is now, with the call that leads.
func (d *Desk) waits(id string) (*item, Question, *Waiting, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	it := d.find(func(it *item) bool { return it.ID == id || it.isBehind(id) || slices.Contains(it.left, id) })
	if it == nil {
		return nil, Question{}, nil, ErrNoQuestion
	}
	q := it.Question
	q.Behind = len(it.behind)
	return it, q, it.lead, nil
}

// behind reports whether a call waits for the one that a person is asked about.
func (d *Desk) behind(it *item, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return it.isBehind(id)
}

// isBehind is behind for who holds mu.
func (it *item) isBehind(id string) bool {
	return slices.ContainsFunc(it.behind, func(w *Waiting) bool { return w.call.Question.ID == id })
}

// change says what the question of a call would be with other arguments. A call that is not there, as it was told to come again,
// is not known well enough.
func (w *Waiting) change(args []byte) (Question, error) {
	if w == nil || w.call.Change == nil {
		return Question{}, errors.New("the arguments of this call cannot be changed")
	}
	return w.call.Change(args)
}
