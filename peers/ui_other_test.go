package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// otherGuard is a guard of another version of the program, which speaks of what this one does not know: it listens where guards do,
// and gives an answer, one JSON value a line, to what it is asked for.
func (h *home) otherGuard(name string, answers map[string][]string) (asked *atomic.Pointer[string]) {
	h.t.Helper()
	dir := filepath.Join(h.dir, "run", "rootbound")
	short, err := os.MkdirTemp("/tmp", "peers-") // a socket's path is short
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { l.Close() })
	asked = new(atomic.Pointer[string])
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				line, err := in.ReadString('\n')
				var r struct{ Do, Token string }
				if err != nil || json.Unmarshal([]byte(line), &r) != nil || r.Token != "token" {
					return
				}
				if r.Do == "answer" {
					asked.Store(&line)
				}
				for _, text := range answers[r.Do] {
					fmt.Fprintln(c, text)
				}
				if r.Do == "watch" {
					in.ReadString('\n') // until the visitor goes
				}
			}()
		}
	}()
	card := fmt.Sprintf(`{"server":%q,"pid":999999999,"since":"2026-11-30T12:00:00Z","socket":%q,"token":"token","colour":"green"}`, name, socket)
	if err := os.WriteFile(filepath.Join(dir, "1-"+name+".json"), []byte(card), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return asked
}

// TestAGuardOfAnotherVersion has words that the page does not know. They are shown as they are, or left out; nothing breaks.
func TestAGuardOfAnotherVersion(t *testing.T) {
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	question := `{"id":"c1","server":"later","tool":"beam","client":"agent","head":"h","digest":"d","size":2,"args":{},"effect":"teleport","from":"a newer authority","from_code":"oracle",
		"why":"the moon is full (rule of tides)","rule":"rule of tides","code":"lunar","why_args":["x"],"kept":"forever","remember":true,"choices":[{},{"allow":true},{"allow":true,"galaxy":"m31"}],
		"places":[{"arg":"/to","given":"~/x","path":"/srv/x","root":"/srv","access":"sing","is":"hologram","size":-1,"aura":7}],"targets":["/srv/x"],"asked":"2026-11-30T12:00:00Z","until":"` + until + `","mood":{"a":[1]}}`
	now := `{"server":"later","pid":1,"since":"2026-11-30T12:00:00Z","version":"9.9","source":"a cloud","source_code":"cloud","why":"it rains","why_code":"weather",
		"roots":[{"name":"r","path":"/srv","access":"sing","state":"asleep","reason":"it dreams","code":"dream"}],"layers":[{"name":"blessed","holds":true,"text":"by the moon"}],
		"clients":[{"name":"agent","revision":"2099-01-01","server_revision":"2098-01-01","roots":null,"why":"","why_code":"weather"}],"minute":{"allowed":1,"dreamt":4},"total":{"allowed":1},
		"refused":{"call":"c0","time":"2026-11-30T12:00:00Z","method":"tools/beam","reason":"no signal","code":"signal"},"closed":"","orbit":"low"}`
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	h := newHome(t, "")
	asked := h.otherGuard("later", map[string][]string{
		"watch": {
			`{"weather":"fine"}`, flat(`{"state":{"paused":false,"questions":[` + question + `],"tide":1},"later":true}`), flat(`{"now":` + now + `}`),
			flat(`{"state":{"questions":[` + question + `]},"now":` + now + `}`),
		},
		"question": {flat(`{"question":` + question + `,"footnote":"*"}`)},
		"answer":   {`{"error":"the moon says no","code":"lunar"}`},
	})
	h.otherGuard("babble", map[string][]string{"watch": {`{"now":{"server":7,"roots":"all","since":"yesterday"}}`}})
	h.otherGuard("silent", map[string][]string{"watch": {`{"error":"I only speak to comets","code":"comet"}`}})
	h.otherGuard("bare", map[string][]string{"watch": {`{"state":{},"now":{}}`}})
	dir := workspace(t)
	h.connect("fs", "--ask", "always", "--root", dir)
	p := h.open()
	for _, language := range []string{"en", "zh"} {
		p.run(`localStorage.setItem("language", "` + language + `")`)
		p.do(chromedp.Navigate(p.at + "/#/now"))
		p.do(chromedp.Reload())
		for _, text := range []string{"tester", "later", "a cloud", "it rains", "asleep", "it dreams", "sing", "blessed", "by the moon", "2099-01-01", "no signal", "bare"} {
			p.shows(text)
		}
		if text := p.shown(); strings.Contains(text, "babble") || strings.Contains(text, "undefined") || strings.Contains(text, "NaN") || strings.Contains(text, "[object") {
			t.Errorf("%s: it shows %s", language, text)
		}
		p.looks("other-now-" + language)
		p.do(chromedp.Navigate(p.at + "/#/questions"))
		for _, text := range []string{"beam", "the moon is full", "rule of tides", "a newer authority", "/srv/x", "hologram", "sing"} {
			p.shows(text)
		}
		if text := p.shown(); strings.Contains(text, "undefined") || strings.Contains(text, "NaN") || strings.Contains(text, "[object") {
			t.Errorf("%s: it shows %s", language, text)
		}
		if gap := eval[float64](p.page, `document.querySelector(".waiting strong").getBoundingClientRect().left - document.querySelector(".waiting input").getBoundingClientRect().right`); gap > 20 {
			t.Errorf("%s: a short name begins %v pixels behind its box", language, gap)
		}
		p.looks("other-question-" + language)
	}
	p.press("2")
	p.shows("the moon says no")
	if r := asked.Load(); r == nil || !strings.Contains(*r, `"allow":true`) || !strings.Contains(*r, `"digest":"d"`) {
		t.Errorf("the guard was told %v", r)
	}
	p.do(chromedp.Navigate(p.at + "/#/grants"))
	p.until(`document.querySelector("main h1") !== null`)
	p.calm()
}
