package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// endChromium ends the browser of this run, after the last test.
var endChromium = func() {}

// chromium is the browser of this run; it is started when it is first needed.
var chromium = sync.OnceValues(func() (context.Context, error) {
	if !slices.ContainsFunc([]string{"chromium", "chromium-browser", "google-chrome"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}) {
		return nil, errors.New("there is no chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	endChromium = func() {
		chromedp.Cancel(ctx) // and takes its files away
		end()
	}
	return ctx, chromedp.Do(ctx)
})

// page is a page in a browser of its own.
type page struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // what the browser says of it
}

// newPage is an empty one. Ours says of an address whether the page may ask for it.
func newPage(t *testing.T, ours func(address string) bool) *page {
	t.Helper()
	parent, err := chromium()
	if err != nil {
		missing(t, "starting a browser: "+err.Error())
	}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(event any) {
		complaint := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complaint = e.ExceptionDetails.Text
		case *runtime.EventConsoleAPICalled:
			text, _ := json.Marshal(e.Args)
			complaint = string(text)
		case *log.EventEntryAdded:
			complaint = e.Entry.Text + " " + e.Entry.URL
		case *network.EventRequestWillBeSent:
			if !ours(e.Request.URL) {
				complaint = "it asks for " + e.Request.URL
			}
		}
		if complaint != "" {
			p.mu.Lock()
			p.complaints = append(p.complaints, complaint)
			p.mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	command(p, log.Enable, cdp.Empty{})
	command(p, network.Enable, network.EnableParams{})
	command(p, runtime.Enable, cdp.Empty{})
	p.do(chromedp.EmulateViewport(1280, 800))
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("in the browser: %v\n%s\n%q", err, p.shown(), p.said())
	}
}

// command has the browser do something with the page.
func command[P, R any](p *page, c cdp.Command[P, R], params P) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, c, params); err != nil {
		p.t.Fatalf("in the browser: %v", err)
	}
}

// shown is what a person reads.
func (p *page) shown() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// eval is what an expression of the page's comes to.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("in the page: %v\n%s\n%s\n%q", err, expression, p.shown(), p.said())
	}
	return v
}

// run runs a script in the page.
func (p *page) run(script string) {
	p.t.Helper()
	eval[chromedp.Void](p, script)
}

// until waits until an expression of the page's is true. It asks again and again: an answer is lost when the page is loaded
// anew meanwhile.
func (p *page) until(expression string) {
	p.t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Promise.resolve("+expression+").then(Boolean)", chromedp.EvalAwaitPromise))
		cancel()
		if err == nil && is {
			return
		}
		if time.Since(begun) > patience {
			p.t.Fatalf("it never comes to %s: %v\n%s\n%q", expression, err, p.shown(), p.said())
		}
	}
}

// shows waits until a text is to be read.
func (p *page) shows(text string) {
	p.t.Helper()
	quoted, _ := json.Marshal(text)
	p.until("document.body.innerText.includes(" + string(quoted) + ")")
}

func (p *page) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.complaints)
}

// calm checks that the browser had nothing to say of the page, but that something was refused, and that it forgot its copies.
func (p *page) calm() {
	p.t.Helper()
	said := slices.DeleteFunc(p.said(), func(s string) bool {
		return strings.HasPrefix(s, "Failed to load resource: the server responded with a status of 4") ||
			strings.HasPrefix(s, "Clear-Site-Data header on ") && strings.Contains(s, `: Cleared data types: "cache".`)
	})
	if len(said) > 0 {
		p.t.Errorf("the browser says %q", said)
	}
}

// theme shows the page in a theme, and in a window so wide. Nothing moves, so that no colour is looked at on its way to another.
func (p *page) theme(scheme string, width int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, 800))
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// axe is what a test of accessibility finds, by rule.
func (p *page) axe() []string {
	p.t.Helper()
	needNode(p.t)
	script, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		p.t.Fatal(err)
	}
	if !eval[bool](p, `typeof axe !== "undefined"`) {
		p.run(string(script))
	}
	return eval[[]string](p, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r =>
		r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`)
}

// looks checks a section in both themes, on a wide and a narrow screen.
func (p *page) looks(name string) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			p.theme(scheme, width)
			p.do(chromedp.Sleep(150 * time.Millisecond))
			if dir := os.Getenv("ROOTBOUND_SHOTS"); dir != "" { // for who wants to see it
				png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
				if err != nil {
					p.t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), png, 0o600); err != nil {
					p.t.Fatal(err)
				}
			}
			for _, found := range p.axe() {
				p.t.Errorf("%s, %s, %d: %s", name, scheme, width, found)
			}
			if wide := eval[int64](p, `document.documentElement.scrollWidth`); wide > width {
				p.t.Errorf("%s, %s: the page is %d wide in a window of %d", name, scheme, wide, width)
			}
			if over := eval[int64](p, `Math.max(0, ...[...document.querySelectorAll("dialog[open]")].map(d => d.scrollWidth - d.clientWidth))`); over > 0 {
				p.t.Errorf("%s, %s, %d: what a dialog has is wider than it by %d", name, scheme, width, over)
			}
		}
	}
	p.theme("light", 1280)
}

// hidden lists texts that a person cannot read: cut off, of no size, or hardly of another colour than what is behind them.
const hidden = `(() => {
  document.querySelectorAll("details").forEach(d => d.open = true);
  const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length == 3 || c[3] > 0.99) return c } return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255] };
  const list = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; n = walker.nextNode();) {
    const text = n.textContent.trim();
    const e = n.parentElement;
    if (!text || innerWidth < 740 && e.closest("thead")) continue; // there each cell says what it is
    const s = getComputedStyle(e), range = document.createRange();
    range.selectNodeContents(n);
    const box = range.getBoundingClientRect();
    const a = light(parse(s.color)) + 0.05, b = light(behind(e).slice(0, 3)) + 0.05, contrast = Math.max(a, b) / Math.min(a, b);
    let why = "";
    if (box.width < 1 || box.height < 1 || s.visibility != "visible") why = "is not shown";
    else if (parseFloat(s.fontSize) < 11) why = "is small";
    else if (contrast < 4.5) why = "has the contrast " + contrast.toFixed(1);
    else if (box.right > innerWidth + 1 || box.left < -1) why = "goes beyond the page";
    if (why) list.push(text.slice(0, 40) + " " + why);
  }
  return list;
})()`

// TestReportInABrowser looks at the report as a person does: on a wide and a narrow screen, light and dark.
func TestReportInABrowser(t *testing.T) {
	dir := t.TempDir()
	reports := map[string][]string{
		"held":   {"--race", "0", "--", guard, "fs", "--log", "off", "--ask", "client", "{roots}"},
		"leaked": {"--race", "0", "--era", "legacy", "--no-confine", "--fail-on", "nothing", "--", guard, "demo", "--naughty-server", "/"},
	}
	for name, args := range reports {
		file := filepath.Join(dir, name+".html")
		if out, err := exec.CommandContext(t.Context(), guard, append([]string{"verify", "--html", file}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 1280} {
				t.Run(fmt.Sprintf("%s, %s, %d", name, scheme, width), func(t *testing.T) {
					p := newPage(t, func(address string) bool { return address == "file://"+file })
					p.theme(scheme, width)
					p.do(chromedp.Navigate("file://" + file))
					first := eval[string](p, `document.body.innerText.slice(0, 400)`)
					if !strings.Contains(first, "Does it keep its boundary?") || !strings.Contains(first, " held") {
						t.Errorf("it begins with %q", first)
					}
					color := eval[string](p, `getComputedStyle(document.body).backgroundColor`)
					if dark := color != "rgb(255, 255, 255)"; dark != (scheme == "dark") {
						t.Errorf("the page is %s", color)
					}
					if unread := eval[[]string](p, hidden); len(unread) > 0 {
						t.Errorf("%d texts cannot be read: %q", len(unread), unread[:min(5, len(unread))])
					}
					if wide := eval[int64](p, `document.documentElement.scrollWidth`); wide > width {
						t.Errorf("the page is %d wide", wide)
					}
					p.calm()
				})
			}
		}
	}
}
