package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// lane is one way of calling the server, of those that take turns.
type lane struct {
	*chain
	call *call
	p50  []float64 // of each round, in seconds
}

// lanes starts every way there is. The caller ends them.
func (b *bench) lanes(size int) (lanes []*lane, err error) {
	defer func() {
		if err != nil {
			endAll(lanes)
		}
	}()
	plain := newCall(size, "")
	for _, l := range []struct {
		name  string
		exact bool
		args  []string
		call  *call
	}{
		{laneDirect, true, []string{b.self, "echo"}, plain},
		{laneCopier, true, []string{b.self, "copy", b.self, "echo"}, plain},
		{laneBlocking, true, []string{b.self, "copy-blocking", b.self, "echo"}, plain},
		{laneLeast, true, []string{b.self, "copy-logged", filepath.Join(b.dir, "records"), b.self, "echo"}, plain},
		{laneSDK, false, []string{b.self, "go-sdk", b.self, "echo"}, plain},
		{laneEdges, true, []string{b.self, "edges", b.self, "echo"}, plain},
		{laneNoLog, true, b.guarded("off"), plain},
		{laneGuard, true, b.guarded("log"), plain},
		{lanePath, true, b.guarded("log"), newCall(size, filepath.Join(b.root, "doc.go"))},
	} {
		c, err := b.startChain(l.name, l.exact, l.args...)
		if err != nil {
			return lanes, err
		}
		lanes = append(lanes, &lane{chain: c, call: l.call})
	}
	return lanes, nil
}

func endAll(lanes []*lane) {
	for _, l := range lanes {
		l.end()
	}
}

const (
	laneDirect   = "direct, nothing between"
	laneCopier   = "copier, Go's default pipes"
	laneBlocking = "copier, blocking pipes"
	laneLeast    = "the same, each line scanned, one write to a file"
	laneSDK      = "go-sdk proxy"
	laneEdges    = "guard, no stages"
	laneNoLog    = "guard, --log off"
	laneGuard    = "guard"
	lanePath     = "guard, a path judged"
)

// takeTurns lets every lane make a block of calls in each round, every other round from the last to the first.
func takeTurns(lanes []*lane, rounds, calls int) error {
	took := make([]float64, calls)
	for range rounds {
		for _, l := range lanes {
			for i := -calls / 8; i < calls; i++ { // the first ones find cold caches
				d, err := l.chain.call(l.call)
				if err != nil {
					return err
				}
				if i >= 0 {
					took[i] = d.Seconds()
				}
			}
			l.p50 = append(l.p50, quantile(took, 0.5))
		}
		slices.Reverse(lanes)
	}
	return nil
}

// against is a budget: a lane of the guard, a peer, and the most that the first may take of the time of the other; 0 promises nothing.
type against struct {
	lane, peer string
	most       float64
}

func (b *bench) roundTrips(size, rounds, calls int, unit string, perSecond float64, budgets []against) ([]result, error) {
	lanes, err := b.lanes(size)
	if err != nil {
		return nil, err
	}
	defer endAll(lanes)
	order := slices.Clone(lanes)
	if err := takeTurns(order, rounds, calls); err != nil {
		return nil, err
	}
	var results []result
	p50 := map[string][]float64{}
	for _, l := range lanes {
		p50[l.name] = l.p50
		scaled := make([]float64, len(l.p50))
		for i, v := range l.p50 {
			scaled[i] = v * perSecond
		}
		results = append(results, summary(l.name, unit, scaled))
	}
	for _, a := range budgets {
		r := ratio(fmt.Sprintf("%s ÷ %s", a.lane, a.peer), p50[a.lane], p50[a.peer])
		if a.most > 0 {
			r = r.within(a.most)
		}
		results = append(results, r)
	}
	return results, nil
}

func oneKB(b *bench) (results []result, err error) {
	err = onOneCPU(func() error {
		results, err = b.roundTrips(1<<10, 15, 1000, "µs", 1/time.Microsecond.Seconds(), []against{
			{laneNoLog, laneCopier, 0.3}, {laneGuard, laneCopier, 0.3},
			{laneNoLog, laneBlocking, 3}, {laneGuard, laneBlocking, 3},
			{laneNoLog, laneSDK, 0.3}, {laneGuard, laneSDK, 0.3}, {laneLeast, laneSDK, 0}, {laneGuard, laneLeast, 0},
		})
		return err
	})
	return results, err
}

func oneMB(b *bench) ([]result, error) {
	return b.roundTrips(1<<20, 11, 16, "ms", 1/time.Millisecond.Seconds(), []against{
		{laneNoLog, laneCopier, 0.9}, {laneGuard, laneCopier, 0.9},
		{laneNoLog, laneSDK, 0.3}, {laneGuard, laneSDK, 0.3},
	})
}
