package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/wire"
)

// What lies outside besides the secret: one to take, and one to remove.
const lootName, victimName = "loot.txt", "victim.txt"

const signalGuard = "signal the guard"

// outcomes are what became of each attempt, in order.
type outcomes []struct{ what, became string }

const cameThrough = "came through"

// String is a line for each.
func (o outcomes) String() string {
	var b strings.Builder
	for _, a := range o {
		fmt.Fprintf(&b, "%s: %s\n", a.what, a.became)
	}
	return b.String()
}

func parseOutcomes(text string) outcomes {
	var o outcomes
	for line := range strings.Lines(text) {
		if what, became, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			o = append(o, struct{ what, became string }{what, became})
		}
	}
	return o
}

// misbehave tries the plain ways from the directory inside to the one outside, and to others. It goes on after each.
func misbehave(inside, outside string) outcomes {
	var o outcomes
	try := func(what string, err error) {
		became := cameThrough
		if err != nil {
			became = bare(err)
		}
		o = append(o, struct{ what, became string }{what, became})
	}
	in := func(name string) string { return filepath.Join(inside, name) }
	out := func(name string) string { return filepath.Join(outside, name) }
	secret := out("secret.txt")

	try("read a file outside", read(secret))
	try("list a directory outside", list(outside))
	if home, err := os.UserHomeDir(); err == nil {
		try("list your home", list(home))
	}
	link := in(".link")
	err := os.Symlink(secret, link)
	if err == nil {
		err = read(link)
		os.Remove(link)
	}
	try("read it by a link", err)
	name := in(".name")
	try("give it a second name inside", os.Link(secret, name))
	os.Remove(name)
	try("write to it", write(secret, os.O_WRONLY|os.O_APPEND))
	try("cut it off", os.Truncate(secret, 0))
	try("make a file outside", write(out("made.txt"), os.O_CREATE|os.O_WRONLY))
	try("make a directory outside", os.Mkdir(out("made"), 0o755))
	try("make a link outside", os.Symlink(inside, out("link")))
	taken := in(".taken")
	try("take a file in", os.Rename(out(lootName), taken))
	os.Remove(taken)
	bait := in(".bait")
	if err := write(bait, os.O_CREATE|os.O_WRONLY); err == nil {
		try("carry a file out", os.Rename(bait, out("bait.txt")))
		os.Remove(bait)
	}
	try("remove a file outside", os.Remove(out(victimName)))
	try("read the guard's environment", read(fmt.Sprintf("/proc/%d/environ", os.Getppid())))
	try("connect over TCP", dial("tcp", "127.0.0.1:9"))
	try("send over UDP", dial("udp", "127.0.0.1:9"))
	try("connect to a Unix socket", dial("unix", out("socket")))
	guard, err := os.FindProcess(os.Getppid())
	if err == nil {
		err = guard.Signal(syscall.Signal(0))
	}
	try(signalGuard, err)
	return o
}

func read(path string) error {
	_, err := os.ReadFile(path)
	return err
}

func list(dir string) error {
	_, err := os.ReadDir(dir)
	return err
}

func write(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// dial connects. Where nobody is, but the way there is free, it is no error.
func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		return nil
	}
	if err == nil {
		c.Close()
	}
	return err
}

// bare is what the system said.
func bare(err error) string {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// misbehave calls the tool that goes out by itself.
func (c *client) misbehave(inside string) (outcomes, error) {
	result, err := c.call("tidy", `{"path":`+string(wire.Quote(inside))+`}`)
	if err != nil {
		return nil, err
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		return nil, fmt.Errorf("the naughty server answered %s", result)
	}
	return parseOutcomes(r.Content[0].Text), nil
}

// compare shows both and returns how many attempts came through that the level promises to stop. What does not come through
// free shows nothing, and too little that does is an error.
func compare(p *printer, free, confined outcomes, level sandbox.Level) (int, error) {
	became := map[string]string{}
	for _, a := range confined {
		became[a.what] = a.became
	}
	var b strings.Builder
	shown, through := 0, 0
	fmt.Fprintf(&b, "%-36s%-28s%s", "The server tried by itself to", "not confined", "confined")
	for _, a := range free {
		held := became[a.what]
		fmt.Fprintf(&b, "\n   %-36s%-28s%s", a.what, a.became, held)
		switch {
		case held == "":
			return 0, fmt.Errorf("the confined server did not try to %s", a.what)
		case a.became != cameThrough, a.what == signalGuard && !level.StopsSignals():
			continue
		}
		if shown++; held == cameThrough {
			through++
		}
	}
	p.say(b.String())
	if shown < 10 {
		return 0, fmt.Errorf("only %d attempts come through without confinement, too few to show anything", shown)
	}
	return through, nil
}
