package peers

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused says where the keyboard is, and what is wrong with that: it cannot be seen, or what lies over it is.
const focused = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return "";
	const what = e.tagName.toLowerCase() + (e.className && typeof e.className === "string" ? "." + e.className.split(" ").join(".") : "") + " " + (e.getAttribute("aria-label") ?? e.innerText ?? "").trim().slice(0, 30);
	const b = e.getBoundingClientRect(), s = getComputedStyle(e);
	const over = [[.5, .5], [.1, .5], [.9, .5], [.5, .2], [.5, .8]].filter(([x, y]) => { const o = document.elementFromPoint(b.left + b.width * x, b.top + b.height * y); return o && (o === e || e.contains(o) || o.contains(e) && !o.matches("nav, .bar")) }).length;
	const wrong = [];
	if (!over) wrong.push("is hidden at " + [b.left, b.top, b.width, b.height].map(Math.round));
	if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 1) wrong.push("is not marked");
	return what.replace(/\s+/g, " ") + (wrong.length ? "\n" + wrong.join(", ") : "");
})()`

// walk goes through the page with Tab, back to its begin, and returns what the keyboard meets, in order.
func (p *tab) walk(where string) (met []string) {
	p.t.Helper()
	p.run(`document.activeElement?.blur(); scrollTo(0, 0)`)
	for range 120 {
		p.do(chromedp.KeyEvent(kb.Tab))
		what, wrong, _ := strings.Cut(eval[string](p.page, focused), "\n")
		if what == "" {
			return met
		}
		if wrong != "" {
			p.t.Errorf("%s: %s %s", where, what, wrong)
		}
		met = append(met, what)
	}
	p.t.Errorf("%s: there is no end to it: %q", where, met)
	return met
}

// TestWithTheKeyboardAlone goes through the sections, and answers on a slow machine.
func TestWithTheKeyboardAlone(t *testing.T) {
	h := newHome(t, askForWrites)
	dir := workspace(t)
	s := h.connect("fs", "--ask", "always", "--root", dir)
	h.call(s, "read_text_file", map[string]any{"path": "/etc/passwd"}).text()
	p := h.open()
	p.shows("tester")
	command(p.page, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4})
	file := filepath.Join(dir, "a.txt")
	c := h.call(s, "write_file", map[string]any{"path": file, "content": "x\n"})
	p.until(`document.title.startsWith("(1) ")`)
	want := map[string]string{"now": "a.button.strong2 1 question", "questions": "button.yes", "roots": "Add a directory", "grants": "a.skip", "log": "Save as JSON lines", "verify": "a.skip"}
	for _, width := range []int64{1280, 360} {
		p.theme("light", width)
		for name, must := range want {
			p.do(chromedp.Navigate(p.at + "/#/" + name))
			p.until(`document.querySelector("main.page-` + name + ` h1") !== null`)
			if name == "questions" {
				p.until(`document.querySelector("main [data-key='2']") !== null`)
			}
			p.do(chromedp.Sleep(settled))
			met := p.walk(fmt.Sprintf("%s, %d", name, width))
			if !strings.HasPrefix(strings.Join(met, "\n"), "a.skip") || !strings.Contains(strings.Join(met, "\n"), must) {
				t.Errorf("%s, %d: the keyboard meets %q", name, width, met)
			}
		}
	}
	p.theme("light", 1280)
	// The settings, and out of them.
	p.run(`document.querySelector("#tools button").focus()`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector("dialog").open && document.querySelector("dialog").contains(document.activeElement)`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.querySelector("dialog").open && document.activeElement === document.querySelector("#tools button")`)
	// An answer for longer, found with Tab alone.
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	p.until(`document.querySelector("main [data-key='2']") !== null`)
	p.run(`document.querySelector(".longer summary").focus()`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector(".longer").open`)
	p.do(chromedp.KeyEvent(kb.Tab))
	p.until(`document.querySelector(".longer").contains(document.activeElement)`)
	p.run(`document.querySelector("main [data-key='2']").focus()`)
	p.do(chromedp.Sleep(settled), chromedp.KeyEvent(kb.Enter))
	if got := c.text(); strings.Contains(got, "refused") || strings.Contains(got, "error") {
		t.Errorf("the model reads %q", got)
	}
	p.shows("Nothing waits for you")
	p.calm()
}
