//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asWatcher starts a program watched, and prints what it does with what is beneath a directory.
func asWatcher(o guardOrder) error {
	runtime.LockOSThread()
	w := Watch{Seen: func(a Access) {
		switch {
		case strings.HasPrefix(a.Path, o.Watch):
			fmt.Printf("%s %s\n", a.Use, strings.TrimPrefix(a.Path, o.Watch))
		case strings.HasPrefix(a.Path, "@rootbound"):
			fmt.Printf("%s @\n", a.Use)
		case a.Use == Connects:
			fmt.Printf("%s %s, datagrams: %v\n", a.Use, a.Address.Addr(), a.UDP)
		case a.Use == Listens, a.Use == Runs && a.Path == "/bin/true" || a.Use == Runs && a.Path == "/usr/bin/true":
			fmt.Printf("%s %s\n", a.Use, filepath.Base(a.Path))
		}
	}}
	if o.Held {
		w.Held = &o.Policy
	}
	s, err := w.Stage(o.Program, append([]string{o.Program}, o.Args...), []string{"HOME=/nowhere"})
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{Path: s.Path, Args: s.Args, ExtraFiles: s.Files, Stderr: os.Stderr, Stdout: os.Stderr, Env: []string{}}
	if err := cmd.Start(); err != nil {
		return err
	}
	level, err := s.Confined()
	if err != nil {
		return err
	}
	fmt.Println(level)
	return cmd.Wait()
}

// A program that is watched can do everything that it can alone, and what it does is seen.
func TestWatch(t *testing.T) {
	probe := buildProbe(t)
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, probe, uid)
			o := w.order()
			plain := o
			plain.Plain, plain.Leak = true, ""
			plain.Args = append(slices.Clone(o.Args), "200") // a descriptor that nobody has
			alone, _, _ := run(t, uid, plain)

			w = newWorld(t, probe, uid)
			o = w.order()
			o.Args, o.Leak, o.Watch = append(o.Args, "200"), "", w.top
			stdout, stderr, code := run(t, uid, o)
			if code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
			}
			if got, want := outcomes(stderr), outcomes(alone); len(want) < 50 || !cmp.Equal(want, got) {
				t.Errorf("what is possible (-alone +watched):\n%s", cmp.Diff(want, got))
			}
			got := map[string]bool{}
			for line := range strings.Lines(stdout) {
				got[strings.TrimSpace(line)] = true
			}
			for _, want := range []string{
				"watched, and held by nothing",
				"reads /in/file", "reads /out/file", "reads /in/hard", "lists /out", "writes /out/file", "writes /out", "writes /in", "writes /in/sub",
				"runs true", "runs /in/program", "connects 127.0.0.1, datagrams: false", "connects 127.0.0.1, datagrams: true",
				"uses the socket /out/server", "uses the socket @", "listens .",
			} {
				if !got[want] {
					t.Errorf("not seen: %q", want)
				}
			}
			for line := range got {
				if strings.Contains(line, "/in/link") || strings.Contains(line, "/out/made") || strings.Contains(line, "nowhere") {
					t.Errorf("seen: %q, which is a link, or was not there", line)
				}
			}
			if t.Failed() {
				t.Log(stdout)
			}
		})
	}
}

// A program that is watched can be held meanwhile as if it were not watched, and what it tries in vain is seen.
func TestWatchHeld(t *testing.T) {
	probe := buildProbe(t)
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, probe, uid)
			o := w.order()
			o.Args, o.Leak = append(o.Args, "200"), ""
			alone, _, _ := run(t, uid, o)

			w = newWorld(t, probe, uid)
			o = w.order()
			o.Args, o.Leak, o.Watch, o.Held = append(o.Args, "200"), "", w.top, true
			stdout, stderr, code := run(t, uid, o)
			if code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
			}
			got, want := outcomes(stderr), outcomes(alone)
			delete(want, "confined") // the level, which is not the same
			if len(want) < 50 || !cmp.Equal(want, got) {
				t.Errorf("what is possible (-held +held and watched):\n%s", cmp.Diff(want, got))
			}
			for _, want := range []string{"watched, and confined: landlock", "reads /in/file", "reads /out/file", "lists /out", "writes /out/file"} {
				if !strings.Contains(stdout, want) {
					t.Errorf("not seen: %q in\n%s", want, stdout)
				}
			}
		})
	}
}

// outcomes are what a probe says of each of its attempts, without those that depend on who has started it.
func outcomes(text string) map[string]string {
	all := map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if what, result, ok := strings.Cut(s.Text(), ": "); ok && !strings.Contains(what, "capability") {
			all[what] = result
		}
	}
	return all
}
