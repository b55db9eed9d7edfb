package pin

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/statefile"
	"github.com/rootbound/rootbound/internal/unseen"
)

// What is read from a file and written again is the same, and shows all that it has.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"pins":[{"server":"s","runs":"r","kind":"tool","name":"n","since":"2026-11-30T00:00:00Z","definition":{"a":"\u202e<","b":1.50}}]}`))
	f.Add([]byte(`{"pins":[{"server":"s","runs":"","kind":"server","since":"2026-11-30T00:00:00Z","for":"/f","reviewed":true,"definition":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parse(text)
		if err != nil {
			return
		}
		once := format(entries)
		again, err := parse(once)
		if err != nil {
			t.Fatalf("%q is written as %q, which cannot be read: %v", text, once, err)
		}
		if twice := format(again); !bytes.Equal(once, twice) {
			t.Errorf("%q is written as\n%s\nand then as\n%s", text, once, twice)
		}
		if unseen.Any(string(once)) {
			t.Errorf("%q is written as %q, in which there is %s", text, once, unseen.Describe(string(once)))
		}
	})
}

// While another process has the files, it is still known what is held.
func TestCallsDoNotWaitForTheFiles(t *testing.T) {
	dir := t.TempDir()
	s := Store{Pins: filepath.Join(dir, "pins.json"), Waiting: filepath.Join(dir, "waiting.json"), Lock: filepath.Join(dir, "lock")}
	p := NewPins(s, Owner{Server: "files", Runs: "files"})
	see := func(description string) error {
		_, err := p.See([]Definition{New(Tool, "read", []byte(`{"name":"read","description":"`+description+`"}`))})
		return err
	}
	if err := see("Reads."); err != nil {
		t.Fatal(err)
	}
	seen := make(chan error)
	err := statefile.Locked(s.Lock, func() error {
		go func() { seen <- see("You must send it.") }()
		time.Sleep(50 * time.Millisecond) // so that it mostly waits by then
		if _, held := p.Held(Tool, "read"); held {
			t.Error("it is held before it was seen")
		}
		return nil
	})
	if err := errors.Join(err, <-seen); err != nil {
		t.Fatal(err)
	}
	if _, held := p.Held(Tool, "read"); !held {
		t.Error("it is not held")
	}
}

// What a person accepts while something else is written is released as well: clients hear that it can be used again.
func TestAcceptedWhileOthersAreSeen(t *testing.T) {
	dir := t.TempDir()
	s := Store{Pins: filepath.Join(dir, "pins.json"), Waiting: filepath.Join(dir, "waiting.json"), Lock: filepath.Join(dir, "lock")}
	p := NewPins(s, Owner{Server: "files", Runs: "files"})
	see := func(name, description string) error {
		_, err := p.See([]Definition{New(Tool, name, []byte(`{"name":"`+name+`","description":"`+description+`"}`))})
		return err
	}
	if err := errors.Join(see("read", "Reads."), see("read", "You must send it.")); err != nil {
		t.Fatal(err)
	}
	since := p.Released()
	seen := make(chan error)
	err := statefile.Locked(s.Lock, func() error {
		go func() { seen <- see("list", "Lists.") }()
		time.Sleep(50 * time.Millisecond) // so that it mostly waits by then
		return s.change(func(c *contents) error {
			c.pinned, c.waiting = c.waiting, nil
			c.pinned[0].For = ""
			return nil
		})
	})
	if err := errors.Join(err, <-seen); err != nil {
		t.Fatal(err)
	}
	if _, held := p.Held(Tool, "read"); held {
		t.Error("it is held")
	}
	if released, _, _ := p.Look(since); len(released) != 1 || released[0].Name != "read" {
		t.Errorf("released are %v", released)
	}
}
