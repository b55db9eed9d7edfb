package calllog

import "iter"

// RootsEvent is something that happened to roots, with what followed from it.
type RootsEvent struct {
	// Entry is of kind RootsAsked, RootsChanged or ListChanged; or of kind RootsAnswered when its question was not read.
	Entry
	// Answer is the answer to a RootsAsked; nil when there is none.
	Answer *Entry
	// Fetched is, for a ListChanged of the roots list, the first question for the list that the one who was told asked
	// afterwards; nil when it did not ask.
	Fetched *Entry
}

// RootsEvents pairs what entries say about roots. The first error that is not an *UnreadableError ends it.
func RootsEvents(entries iter.Seq2[Entry, error]) ([]RootsEvent, error) {
	type question struct{ file, ask string }
	type party struct {
		file, session string
		who           Party
	}
	var events []RootsEvent
	asked := map[question]int{}  // the question without an answer
	changed := map[party][]int{} // the notifications after which nothing was fetched
	for e, err := range entries {
		if fatal(err) {
			return events, err
		}
		if err != nil || !aboutRoots(&e.Record) {
			continue
		}
		at := len(events)
		switch e.Kind {
		case RootsAnswered:
			if i, ok := asked[question{e.File, e.Ask}]; ok {
				events[i].Answer = &e
				delete(asked, question{e.File, e.Ask})
				continue
			}
		case RootsAsked:
			asked[question{e.File, e.Ask}] = at
			who := party{e.File, e.Session, e.From}
			for _, i := range changed[who] {
				events[i].Fetched = &e
			}
			delete(changed, who)
		case ListChanged:
			who := party{e.File, e.Session, e.To}
			changed[who] = append(changed[who], at)
		}
		events = append(events, RootsEvent{Entry: e})
	}
	return events, nil
}
