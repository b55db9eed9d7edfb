//go:build unix

package roots_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/rootbound/rootbound/roots"
)

// A client's list narrows what is configured, and one bad root in it does not touch the others.
func Example() {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	if err := os.MkdirAll(filepath.Join(top, "work", "frontend"), 0o755); err != nil {
		log.Fatal(err)
	}

	work, err := roots.Resolve(filepath.Join(top, "work"), roots.ResolveOptions{Name: "work", Access: roots.ReadOnly, Origin: "--ro"})
	if err != nil {
		log.Fatal(err)
	}
	configured := roots.NewSet(work)

	answer := []roots.Root{
		{URI: roots.FileURI(filepath.Join(top, "work", "frontend")), Name: "frontend"},
		{URI: "vscode-remote://ssh-remote/srv", Name: "srv"},
	}
	listed, bad := roots.ResolveList(answer, roots.ParseURI, roots.ResolveOptions{Access: roots.ReadWrite, Origin: "client"})
	for _, d := range configured.Intersect(roots.NewSet(listed...)).Dirs() {
		rel, _ := filepath.Rel(work.Path, d.Path)
		fmt.Println(d.Name, rel, d.Access == roots.ReadOnly)
	}
	for _, e := range bad {
		fmt.Println(e)
	}
	// Output:
	// frontend frontend true
	// refusing root "vscode-remote://ssh-remote/srv": it is not a file URI; only file: URIs name a directory of this machine
}

func ExampleParseURI() {
	path, err := roots.ParseURI("file:///home/me/my%20project")
	fmt.Printf("%q %v\n", path, err)

	_, err = roots.ParseURI("/home/me/my project")
	fmt.Println(err)

	var refused *roots.Error
	_, err = roots.ParseURI("file:///home/me/../you")
	if errors.As(err, &refused) && refused.Reason == roots.DotDot {
		fmt.Println(refused.Fix)
	}
	// Output:
	// "/home/me/my project" <nil>
	// refusing root "/home/me/my project": it is a path without a scheme; write file:///home/me/my%20project
	// write the path that is meant, without ".."
}

func ExampleFileURI() {
	fmt.Println(roots.FileURI("/home/me/100% #1"))
	// Output: file:///home/me/100%25%20%231
}

// A request comes, the client is asked, and its answer holds from then on. The caller asks and reads the clock; the
// Tracker only decides.
func ExampleTracker() {
	now := time.Now()
	a := roots.Dir{Path: "/srv/a", Access: roots.ReadWrite}
	b := roots.Dir{Path: "/srv/b", Access: roots.ReadWrite}
	t := roots.NewTracker(roots.Narrow, roots.NewSet(a, b))
	t.Client(roots.Client{Roots: true, ListChanged: true})

	step := t.Need(now)
	fmt.Println("ask:", step.Ask)
	step = t.Answer(now, step.Question, roots.Answer{Dirs: []roots.Dir{b}})
	fmt.Println("tell servers of a change:", step.Changed)
	fmt.Println(t.State())

	fmt.Println("ask again:", t.Need(now.Add(time.Hour)).Ask)
	t.ListChanged()
	fmt.Println("and after a change:", t.Need(now.Add(time.Hour)).Ask)
	// Output:
	// ask: true
	// tell servers of a change: true
	// allowed is what is both configured and in the client's list: "/srv/b"
	// ask again: false
	// and after a change: true
}

// A server asks its client in the middle of a request, and serves it by what holds then.
func ExampleSession() {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	var configured []roots.Dir
	for _, name := range []string{"frontend", "backend"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			log.Fatal(err)
		}
		dir, err := roots.Resolve(filepath.Join(top, name), roots.ResolveOptions{Name: name, Access: roots.ReadWrite})
		if err != nil {
			log.Fatal(err)
		}
		configured = append(configured, dir)
	}
	askClient := func() ([]roots.Root, error) { // roots/list
		return []roots.Root{{URI: roots.FileURI(filepath.Join(top, "backend"))}}, nil
	}

	session := roots.NewSession(roots.SessionOptions{Configured: roots.NewSet(configured...)})
	serve := func() {
		for {
			state, ask, err := session.Need(context.Background(), roots.Client{Roots: true, ListChanged: true})
			if err != nil {
				log.Fatal(err)
			}
			if ask == 0 {
				for _, d := range state.Set.Dirs() {
					fmt.Println("holds:", filepath.Base(d.Path))
				}
				return
			}
			fmt.Println("question", ask)
			list, err := askClient()
			session.Answer(ask, list, err)
		}
	}
	serve()
	serve()
	session.ListChanged() // notifications/roots/list_changed
	serve()
	// Output:
	// question 1
	// holds: backend
	// holds: backend
	// question 2
	// holds: backend
}

// A client tells a server only of what its user agreed to.
func ExampleList() {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	var dirs []roots.Dir
	for _, name := range []string{"work", "private"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			log.Fatal(err)
		}
		dir, err := roots.Resolve(filepath.Join(top, name), roots.ResolveOptions{Name: name, Access: roots.ReadWrite})
		if err != nil {
			log.Fatal(err)
		}
		dirs = append(dirs, dir)
	}

	list := roots.NewList(roots.NewSet(dirs[0])) // the user agreed to work
	list.Set(dirs...)                            // and has both open
	show := func() {
		for _, r := range list.Roots() {
			fmt.Println("told:", r.Name)
		}
		for _, d := range list.Waiting().Dirs() {
			fmt.Println("to be asked about:", d.Name)
		}
	}
	show()
	list.Consent(roots.NewSet(dirs...))
	show()
	fmt.Println(list.Declare("2025-11-25").ListChanged, list.Declare("2026-07-28").ListChanged)
	// Output:
	// told: work
	// to be asked about: private
	// told: work
	// told: private
	// true false
}
