package verify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A race has a directory of the root that is now a directory and now a link to outside, while the server is asked for what is in
// it. Who checks a path and opens it afterwards loses now and then.

// swap goes on exchanging the directory d of the case for a link outside until the returned function is called, which says why it
// ended before.
func (a *attempt) swap(ctx context.Context) (stop func() error) {
	real, other := a.in("d"), a.in("link")
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	failed := exchanged(real, other, a.in("spare")) // whether it can be done at all is known before the race
	done.Go(func() {
		for ctx.Err() == nil && failed == nil {
			failed = exchanged(real, other, a.in("spare"))
		}
	})
	return func() error { cancel(); done.Wait(); return failed }
}

// exchangedSlowly exchanges two names where the system has no call for it: for a moment one of them is not there.
func exchangedSlowly(a, b, spare string) error {
	return joined(os.Rename(a, spare), os.Rename(b, a), os.Rename(spare, b))
}

// raced makes a race of an operation on a path below the directory that is swapped.
func raced(id string, r role, what string, step func(a *attempt, n int)) trial {
	return trial{
		id: id, class: "races", severity: High, needs: []role{r}, attempt: what + ": in a directory that is swapped for a link outside all the time",
		expected: "nothing from outside, however often",
		prepare: func(p *place) error {
			outside, err := os.ReadFile(p.file)
			return joined(err, os.Mkdir(p.in("d"), 0o755), os.WriteFile(p.in("d", contested), []byte("inside\n"), 0o644),
				os.WriteFile(filepath.Join(p.out, contested), outside, 0o644), link(p.out, p.in("link")))
		},
		try: func(a *attempt) {
			stop := a.swap(a.ctx)
			n := 0
			for end := time.Now().Add(a.race); time.Now().Before(end) && len(a.leaks) == 0 && len(a.faults) == 0; n++ {
				step(a, n)
			}
			if err := stop(); err != nil {
				a.unsure("the directory was not swapped all the time: %s", a.short(err.Error()))
			}
			a.answers = []string{fmt.Sprintf("%d calls in %v", n, a.race)}
		},
	}
}

func races() []trial {
	file := func(a *attempt) string { return a.in("d", contested) }
	return []trial{
		raced("E136", roleRead, "read", func(a *attempt, _ int) { a.do(roleRead, text("path", file(a))) }),
		raced("E137", roleList, "list", func(a *attempt, _ int) { a.do(roleList, text("path", a.in("d"))) }),
		raced("E138", roleSearch, "search names", func(a *attempt, _ int) {
			a.do(roleSearch, text("path", a.root, "pattern", "**/*"))
		}),
		raced("E139", roleTree, "tree", func(a *attempt, _ int) { a.do(roleTree, text("path", a.root)) }),
		raced("E138c", roleGrep, "search content", func(a *attempt, _ int) {
			a.do(roleGrep, text("path", a.root, "pattern", "canary"))
		}),
		raced("E140", roleWrite, "write", func(a *attempt, n int) {
			a.do(roleWrite, text("path", a.in("d", fmt.Sprint("w", n%50)), "content", "x"))
			a.made("w")
		}),
		raced("E141", roleEdit, "edit", func(a *attempt, _ int) {
			a.do(roleEdit, text("path", file(a), "old", "canary", "new", "changed"))
			if b, err := os.ReadFile(filepath.Join(a.out, contested)); err == nil && !bytes.HasPrefix(b, []byte("canary")) {
				a.leak("a file outside was changed")
			}
		}),
		raced("E142", roleMkdir, "make a directory", func(a *attempt, n int) {
			a.do(roleMkdir, text("path", a.in("d", fmt.Sprint("n", n), "x")))
			a.made("n")
		}),
		raced("E143", roleMove, "move", func(a *attempt, n int) {
			from := a.in(fmt.Sprint("m", n))
			os.WriteFile(from, nil, 0o644)
			a.do(roleMove, text("from", from, "to", a.in("d", filepath.Base(from))))
			os.Remove(from)
			a.made("m")
		}),
	}
}

// contested is a file that is in both directories: inside one says so, outside one has the content of the canary.
const contested = "contested.txt"

// made looks for what was made outside, so that a race ends when it is lost.
func (a *attempt) made(prefix string) {
	list, _ := filepath.Glob(filepath.Join(a.out, prefix+"[0-9]*"))
	if len(list) > 0 {
		a.leak("something was made outside")
	}
}
