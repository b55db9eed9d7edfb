package main

import (
	"errors"
	"fmt"
	"time"
)

// The rounds of the memory case: guards that are started and looked at.
const (
	idleGuards   = 5
	busyMessages = 1000
)

func memory(b *bench) ([]result, error) {
	var private, resident []float64
	for range idleGuards {
		used, err := b.guardMemory(func(*chain) error {
			time.Sleep(300 * time.Millisecond) // idle is what it is when its start is over
			return nil
		})
		if err != nil {
			return nil, err
		}
		private, resident = append(private, used.anon), append(resident, used.resident)
	}
	p := newCall(1<<20, "")
	busy, err := b.guardMemory(func(c *chain) error {
		for range busyMessages {
			if _, err := c.call(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	after := fmt.Sprintf("after %d calls of 1 MB, answered with 1 MB", busyMessages)
	return []result{
		summary("idle, private", "MB", private).within(8),
		summary("idle, resident", "MB", resident).within(20),
		summary(after+", resident", "MB", []float64{busy.resident}).within(80),
		summary(after+", most ever resident", "MB", []float64{busy.peak}),
	}, nil
}

// usage is the memory of a process in megabytes.
type usage struct{ anon, resident, peak float64 }

// guardMemory returns what a guard uses after use.
func (b *bench) guardMemory(use func(*chain) error) (u usage, err error) {
	c, err := b.startChain(laneGuard, true, b.guarded("log")...)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	if err := use(c); err != nil {
		return u, err
	}
	return memoryOf(c.cmd.Process.Pid)
}
