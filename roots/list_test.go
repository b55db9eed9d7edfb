package roots

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestList(t *testing.T) {
	dirs := workspace(t, "work", "work/b", "work/a", "other")
	work, b, a, other := dirs[0], dirs[1], dirs[2], dirs[3]
	holes := func(d Dir) Dir { d.Access = 0; return d }
	for _, test := range []struct {
		name       string
		consented  Set
		open       []Dir
		want, wait string
	}{
		{"what is in it is consented to", NewSet(work), []Dir{b, a}, "work/b work/a", ""},
		{"nobody consented", Set{}, []Dir{b}, "", "work/b"},
		{"part of it", NewSet(a), []Dir{b, a, other}, "work/a", "work/b other"},
		{"what holds it is more", NewSet(a), []Dir{work}, "", "work"},
		{"a hole in it", NewSet(work, holes(b)), []Dir{a, b}, "work/a", "work/b"},
		{"nothing is open", NewSet(work), nil, "", ""},
		{"twice", NewSet(work), []Dir{a, a}, "work/a", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := NewList(test.consented)
			if diff := cmp.Diff(NewSet(test.consented.Dirs()...).Roots(), l.Roots()); diff != "" && test.consented.Len() > 0 {
				t.Errorf("at first (-want +got):\n%s", diff)
			}
			l.Set(test.open...)
			got := ""
			for i, r := range l.Roots() {
				if i > 0 {
					got += " "
				}
				got += r.Name
			}
			if got != test.want || names(l.Waiting()) != test.wait {
				t.Errorf("told %q, waiting %q; want %q, %q", got, names(l.Waiting()), test.want, test.wait)
			}
		})
	}
	var zero List
	zero.Set(work)
	if got := zero.Roots(); got == nil || len(got) != 0 {
		t.Errorf("the zero value tells %#v, want an empty list", got)
	}
	for revision, want := range map[string]Client{
		"2024-11-05": {Roots: true, ListChanged: true}, "2025-11-25": {Roots: true, ListChanged: true}, "2026-07-28": {Roots: true},
	} {
		if got := zero.Declare(revision); got != want {
			t.Errorf("in %s it declares %+v, want %+v", revision, got, want)
		}
	}
}

func TestListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		a, b := dirs[0], dirs[1]
		l := NewList(NewSet(a))
		ctx, cancel := context.WithCancel(t.Context())
		changes := l.Changes(ctx)
		l.Set(b)                 // before anybody ranges: counted from the call
		got := make(chan string) // the names of each list
		done := make(chan bool)
		go func() {
			defer close(done)
			for list := range changes {
				text := ""
				for _, r := range list {
					text += r.Name
				}
				got <- text
			}
		}()
		next := func(what, want string) {
			t.Helper()
			select {
			case list := <-got:
				if list != want {
					t.Errorf("%s: %q is told, want %q", what, list, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: nothing was told", what)
			}
		}
		still := func(what string) {
			t.Helper()
			select {
			case list := <-got:
				t.Errorf("%s: %q is told, want nothing", what, list)
			case <-time.After(time.Minute):
			}
		}
		next("b, of which it may not be told", "")
		l.Consent(NewSet(b))
		next("consent", "b")
		l.Set(b)
		l.Consent(NewSet(a, b))
		still("the same list")

		if err := os.Remove(b.Path); err != nil {
			t.Fatal(err)
		}
		next("gone", "")
		elsewhere := filepath.Join(filepath.Dir(b.Path), "elsewhere")
		if err := os.Mkdir(elsewhere, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(elsewhere, b.Path); err != nil {
			t.Fatal(err)
		}
		next("back", "b")
		if err := os.Mkdir(elsewhere, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(b.Path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(elsewhere, b.Path); err != nil {
			t.Fatal(err)
		}
		next("another directory in its place", "b")

		for range 1000 { // a storm is told once or twice
			l.Set(a, b)
			l.Set(a)
		}
		synctest.Wait()
		for list := ""; list != "a"; {
			list = <-got
		}
		still("after a storm")
		cancel()
		<-done
	})
}
