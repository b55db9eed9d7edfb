package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// classes are attempts of the sandbox's probe that show something whoever confines: that reach, when they succeed, what is
// really outside, or a part of the kernel. Left out is what succeeds in a stand-in that a sandbox of namespaces puts there (an
// empty directory, a network of its own), what is about the process that started the probe, and running other programs, which
// is forbidden by the one and meant by the other.
var classes = []struct {
	name     string
	attempts []string
}{
	{"content of files outside", []string{
		"read outside", "read outside, by a link inside", "read outside, by a link made now", "make a hard link to outside",
		"read outside, by /proc/self/root", "read outside, by a handle without rights", "write outside", "truncate outside", "remove outside",
		"move from inside to outside", "move from outside to inside",
	}},
	{"a file outside by a second name inside", []string{"read outside, by a hard link inside"}},
	{"looking at files outside", []string{"look at a file outside", "take a file's handle outside", "read attributes outside"}},
	{"mode, times, owner, attributes, flags", []string{
		"change the mode outside", "change the times outside", "change the owner outside", "change attributes outside", "change flags outside",
	}},
	{"connections", []string{"connect over TCP", "connect over MPTCP", "connect over TCP with the first data"}},
	{"Unix sockets of others", []string{
		"connect to a Unix socket outside", "send to a Unix socket outside, from a pair", "connect to an abstract Unix socket",
	}},
	{"parts of the kernel", []string{
		"set up io_uring", "load a program into the kernel", "read the session's keys", "make a user namespace", "make a user namespace by clone3",
	}},
}

// confineAttempts lets one program try what a hostile one would: alone, behind the guard, and behind srt, each told of one
// directory that may be written and one that is nobody's business.
func confineAttempts(b *bench) ([]result, error) {
	srt, err := exec.LookPath("srt")
	if err != nil {
		return nil, fmt.Errorf("finding srt (npm install -g @anthropic-ai/sandbox-runtime; it needs bubblewrap, socat and ripgrep): %w", err)
	}
	probe := filepath.Join(b.dir, "probe")
	build := exec.Command("go", "build", "-o", probe, "./internal/sandbox/testdata/probe")
	build.Dir, build.Env = b.repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the probe: %w: %s", err, out)
	}
	outcomes := map[string]map[string]string{}
	ways := []string{"alone", "guard", "srt"}
	for _, way := range ways {
		w, err := newScene(filepath.Join(b.dir, "scene-"+way))
		if err != nil {
			return nil, err
		}
		line := strings.Join(append([]string{probe}, w.args...), " ") + " >&2"
		cmd := exec.Command("/bin/sh", "-c", line)
		switch way {
		case "guard":
			cmd = exec.Command(b.guard, "run", "--confine", "--allow-run", probe, "--root", w.in, "--log", "off", "--", "sh", "-c", line)
			cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n")
		case "srt":
			settings := filepath.Join(b.dir, "attempts.json")
			text, err := json.Marshal(map[string]any{
				"network":    map[string]any{"allowedDomains": []string{}, "deniedDomains": []string{}},
				"filesystem": map[string]any{"denyRead": []string{w.out}, "allowWrite": []string{w.in}, "denyWrite": []string{}},
			})
			if err == nil {
				err = os.WriteFile(settings, text, 0o600)
			}
			if err != nil {
				return nil, err
			}
			cmd = exec.Command(srt, "--settings", settings, "-c", line)
		}
		cmd.Dir = w.in
		var said strings.Builder
		cmd.Stderr = &said
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			return nil, err
		}
		w.close()
		outcomes[way] = map[string]string{}
		for l := range strings.Lines(said.String()) {
			if what, result, ok := strings.Cut(strings.TrimSpace(l), ": "); ok {
				outcomes[way][what] = result
			}
		}
		if outcomes[way]["read inside"] != "yes" || outcomes[way]["write inside"] != "yes" {
			return nil, fmt.Errorf("%s: the probe did not run: %s", way, said.String())
		}
	}
	var results []result
	for _, c := range classes {
		possible, through := 0., map[string]float64{}
		for _, attempt := range c.attempts {
			if outcomes["alone"][attempt] != "yes" {
				continue // it shows nothing here
			}
			possible++
			for _, way := range ways[1:] {
				if outcomes[way][attempt] == "yes" {
					through[way]++
				}
			}
		}
		results = append(results,
			summary(c.name+", possible alone", "ways", []float64{possible}),
			summary(c.name+", stopped by the guard", "ways", []float64{possible - through["guard"]}),
			summary(c.name+", stopped by srt", "ways", []float64{possible - through["srt"]}))
	}
	return results, nil
}

// scene is where a probe plays: a directory inside, one outside, and servers outside.
type scene struct {
	in, out string
	args    []string
	close   func()
}

func newScene(top string) (*scene, error) {
	s := &scene{in: filepath.Join(top, "in"), out: filepath.Join(top, "out")}
	var errs []error
	for _, dir := range []string{"in/sub", "in/empty", "out"} {
		errs = append(errs, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	for _, file := range []string{"in/file", "out/file", "out/other", "out/gone", "out/mine", "out/second"} {
		errs = append(errs, os.WriteFile(filepath.Join(top, file), []byte(file), 0o600))
	}
	errs = append(errs, os.Symlink("../out/file", filepath.Join(s.in, "link")), os.Link(filepath.Join(s.out, "second"), filepath.Join(s.in, "hard")))
	var open []interface{ Close() error }
	port := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			errs = append(errs, err)
			return ""
		}
		open = append(open, l)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		_, p, _ := net.SplitHostPort(l.Addr().String())
		return p
	}
	packets := func(network, address string) string {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			errs = append(errs, err)
			return ""
		}
		open = append(open, c)
		_, p, _ := net.SplitHostPort(c.LocalAddr().String())
		return p
	}
	abstract := filepath.Base(filepath.Dir(top)) + filepath.Base(top)
	port("unix", filepath.Join(s.out, "server"))
	packets("unixgram", filepath.Join(s.out, "datagrams"))
	port("unix", "@"+abstract)
	s.args = []string{s.in, s.out, port("tcp", "127.0.0.1:0"), packets("udp", "127.0.0.1:0"), abstract, port("tcp", "127.0.0.1:0"), "200"}
	s.close = func() {
		for _, c := range open {
			c.Close()
		}
		unmount(filepath.Join(s.in, "sub")) // where root could mount
	}
	return s, errors.Join(errs...)
}
