package peers

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// written is a log file as a run leaves it: records in a chain of hashes.
type written struct {
	t    *testing.T
	path string
	file *os.File
	at   time.Time
	seq  int
	prev string
}

// log begins a log in this home.
func (h *home) log(server string, at time.Time) *written {
	h.t.Helper()
	dir := filepath.Join(h.dir, "state", "rootbound", "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(dir, at.UTC().Format("20060102T150405.000000Z")+"-x-1-01234567.jsonl")
	f, err := os.Create(path)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { f.Close() })
	w := &written{h.t, path, f, at, 0, strings.Repeat("0", 64)}
	w.add(map[string]any{"kind": "start", "server": server, "version": "0.1", "pid": 1, "dirs": []any{map[string]any{"name": "app", "path": "/home/u/app"}}})
	return w
}

// add writes a record, half a minute after the one before.
func (w *written) add(record map[string]any) {
	w.t.Helper()
	text, err := json.Marshal(record)
	if err != nil {
		w.t.Fatal(err)
	}
	w.seq++
	w.at = w.at.Add(31 * time.Second)
	line := fmt.Sprintf(`{"seq":%d,"time":"%s",%s,"prev":"%s"`, w.seq, w.at.UTC().Format("2006-01-02T15:04:05.000000Z"), text[1:len(text)-1], w.prev)
	w.prev = fmt.Sprintf("%x", sha256.Sum256([]byte(line)))
	if _, err := fmt.Fprintf(w.file, "%s,\"hash\":\"%s\"}\n", line, w.prev); err != nil {
		w.t.Fatal(err)
	}
}

// records is how many records are in the list.
const records = `document.querySelectorAll("li.record").length`

// TestTheLogOnThePage finds a refusal of a real server among other calls, and reads its story.
func TestTheLogOnThePage(t *testing.T) {
	h := newHome(t, "")
	dir := workspace(t)
	p := h.open()
	p.do(chromedp.Navigate(p.at + "/#/log"))
	p.shows("Nothing is logged yet")
	p.looks("log-nothing")
	s := h.connect("fs", "--root", "work="+dir)
	h.call(s, "list_directory", map[string]any{"path": dir}).text()
	if got := h.call(s, "read_text_file", map[string]any{"path": "/etc/passwd"}).text(); !strings.Contains(got, "outside") {
		t.Errorf("the model reads %q", got)
	}
	p.shows("read_text_file") // as it comes
	p.shows("The chain of what you see holds")

	p.run(`{ const e = document.querySelector("input[type=search]"); e.value = "PASSWD"; e.dispatchEvent(new InputEvent("input", {bubbles: true})) }`)
	p.until(records + ` === 1`)
	p.until(`location.hash === "#/log?text=PASSWD"`)
	p.do(chromedp.Reload()) // the address has what was looked for
	p.until(records + ` === 1`)
	p.until(`document.querySelector("input[type=search]").value === "PASSWD"`)
	p.do(chromedp.Click("li.record a"))
	p.shows("What would have allowed it")
	p.shows("--root /etc")
	p.shows("/etc/passwd")
	p.shows("work " + dir)
	p.looks("story")
	p.do(chromedp.Click(".back"))
	p.until(records + ` === 1`)

	// What is found can be saved: as it is in the file, and nothing else.
	saved := eval[string](p.page, `import("/web/lib/api.js").then(m => m.link("/api/log/export?text=PASSWD")).then(fetch).then(r => r.text())`)
	var r struct{ Tool, Verdict string }
	if err := json.Unmarshal([]byte(saved), &r); err != nil || r.Tool != "read_text_file" || r.Verdict != "deny" {
		t.Errorf("what is saved is %q: %v", saved, err)
	}

	p.do(chromedp.Click(`//button[text()="Clear"]`))
	p.until(records + ` > 2`)
	p.run(`{ const e = document.querySelector(".by-verdict select"); e.value = "deny"; e.dispatchEvent(new Event("change", {bubbles: true})) }`)
	p.until(records + ` === 1`)
	p.run(`{ const e = document.querySelector(".by-path input"); e.value = "/var"; e.dispatchEvent(new InputEvent("input", {bubbles: true})) }`)
	p.shows("Nothing like that is logged")
	p.calm()
}

// TestALongLogOnThePage is charts, pages, and a chain that was broken.
func TestALongLogOnThePage(t *testing.T) {
	h := newHome(t, "")
	l := h.log("files", time.Now().Add(-26*time.Hour))
	for i := range 1400 {
		id, tool := fmt.Sprintf("%06x", i), []string{"read_text_file", "list_directory", "edit_file"}[i%3]
		rel := fmt.Sprintf("internal/server/handler%d.go", i%40)
		if i%23 == 0 {
			l.add(map[string]any{"kind": "call", "server": "files", "call": id, "method": "tools/call", "tool": tool, "verdict": "deny", "code": "outside", "reason": "the path is in no root",
				"paths": []any{map[string]any{"arg": "/path", "given": "~/.ssh/config", "resolved": "/home/u/.ssh/config", "verdict": "deny", "code": "outside"}}})
			continue
		}
		l.add(map[string]any{"kind": "call", "server": "files", "call": id, "method": "tools/call", "tool": tool, "verdict": "allow",
			"paths": []any{map[string]any{"arg": "/path", "given": "/home/u/app/" + rel, "resolved": "/home/u/app/" + rel, "root": "app", "rel": rel, "verdict": "allow"}}})
		l.add(map[string]any{"kind": "end", "server": "files", "call": id, "method": "tools/call", "tool": tool, "outcome": "ok", "ms": 1 + i%90*i%70, "bytes": i * 31})
	}
	l.add(map[string]any{"kind": "exit", "server": "files", "reason": "client closed"})
	p := h.open()
	p.do(chromedp.Navigate(p.at + "/#/log"))
	p.until(records + ` === 50`)
	p.shows("Calls over time")
	p.shows("61")
	p.shows("The chain of what you see holds")
	p.looks("log")
	p.do(chromedp.Click(`//button[text()="Show older ones"]`))
	p.until(records + ` === 100`)
	p.do(chromedp.Click(`summary`))
	p.until(`document.querySelectorAll("tbody tr").length > 10`)
	if n := eval[int](p.page, `[...document.querySelectorAll("tbody tr")].reduce((n, r) => n + Number(r.children[2].textContent), 0)`); n != 61 {
		t.Errorf("the table has %d refusals, want 61", n)
	}
	p.do(chromedp.Click(".plot")) // a part of the time, by itself
	p.until(`new URLSearchParams(location.hash.split("?")[1]).has("until")`)
	p.until(`document.querySelector(".own").hidden === false`)

	// Somebody changes what was written.
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path, []byte(strings.Replace(string(text), "/home/u/.ssh/config", "/home/u/.bash/rc..", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate(p.at + "/#/log"))
	p.do(chromedp.Reload())
	p.shows("1 file was changed after it was written")
	p.shows("does not have the hash that it carries: it was changed")
	p.run(`localStorage.setItem("language", "zh")`)
	p.do(chromedp.Reload())
	p.shows("在写入后被改动")
	p.shows("记录与它所带的哈希不符")
	p.looks("log-broken-zh")
	p.calm()
}

// TestWhatBelongsTogetherStaysInALine looks where lines end: not in a number with its unit, and not right behind the begin of a path.
func TestWhatBelongsTogetherStaysInALine(t *testing.T) {
	h := newHome(t, "")
	l := h.log("files", time.Now().Add(-time.Hour))
	for i := range 60 {
		id := fmt.Sprintf("%06x", i)
		l.add(map[string]any{"kind": "call", "server": "files", "call": id, "method": "tools/call", "tool": "read_text_file", "verdict": "allow"})
		l.add(map[string]any{"kind": "end", "server": "files", "call": id, "method": "tools/call", "tool": "read_text_file", "outcome": "ok", "ms": 300, "bytes": 1})
	}
	p := h.open()
	for language, label := range map[string]string{"en": "300 ms", "zh": "300 毫秒"} {
		p.run(`localStorage.setItem("language", "` + language + `")`)
		p.do(chromedp.Navigate(p.at + "/#/log"))
		p.do(chromedp.Reload())
		p.until(`document.querySelector(".axes .slow")?.textContent === "` + label + `"`)
		for _, width := range []int64{1280, 360} {
			p.theme("light", width)
			if lines := eval[int](p.page, `(r => { r.selectNodeContents(document.querySelector(".axes .slow")); return new Set([...r.getClientRects()].map(b => Math.round(b.top))).size })(document.createRange())`); lines != 1 {
				t.Errorf("%s, %d: %q has %d lines", language, width, label, lines)
			}
			if over := eval[bool](p.page, `document.querySelector(".axes .slow").getBoundingClientRect().right > document.querySelector(".plot").getBoundingClientRect().left + 1`); over {
				t.Errorf("%s, %d: %q lies over the chart", language, width, label)
			}
		}
		p.looks("log-label-" + language)
	}
	broken := eval[[]string](p.page, `Promise.all(["/web/lib/dom.js", "/web/lib/text.js"].map(m => import(m))).then(([{h, path}, {parts}]) => {
		const list = [], main = document.querySelector("main");
		for (const sentence of ["write_file of files wants to write {what}", "files 的 write_file 想写入 {what}"]) {
			for (const where of ["/srv/a/b.txt", "/averylongnameofadirectorythatfillsaline/b.txt", "~/notes/b.txt", "C:\\Users\\me\\b.txt", "https://example.com/a/b", "\\\\host\\share\\b.txt"]) {
				const title = h("h2", null, parts(sentence, {what: h("strong", null, path(where))}));
				const box = h("section.asked", null, h("header", null, title));
				main.replaceChildren(box);
				const begin = where.match(/^\W*\w?:?\W+|^\w+:\/\//)[0].length;
				const range = (n) => { const w = document.createTreeWalker(title.querySelector(".path"), NodeFilter.SHOW_TEXT), r = document.createRange(); let t = w.nextNode(); while (n >= t.length) { n -= t.length; t = w.nextNode() } r.setStart(t, n); r.setEnd(t, n + 1); return r.getBoundingClientRect().top };
				for (let width = 150; width < 700; width++) {
					title.setAttribute("class", "w");
					document.adoptedStyleSheets[0]?.replaceSync(".w { width: " + width + "px }");
					if (!document.adoptedStyleSheets.length) { const s = new CSSStyleSheet(); s.replaceSync(".w { width: " + width + "px }"); document.adoptedStyleSheets = [s] }
					if (title.getBoundingClientRect().width !== width) { list.push("it is not so wide: " + width); break }
					if (range(0) !== range(begin)) { list.push(where + " at " + width); break }
				}
			}
		}
		return list;
	})`)
	if len(broken) > 0 {
		t.Errorf("these end a line where they have just begun: %q", broken)
	}
	p.calm()
}

// TestAHostileLog has in every field what would break a page, or deceive who reads it.
func TestAHostileLog(t *testing.T) {
	h := newHome(t, "")
	evil := `<img src=x onerror="alert(1)"><script>alert(2)</script>"'` + "\u202egnp.exe\u2066\x1b[31m\u200b\ufeff\U000e0041\nallowed  fine"
	l := h.log(evil, time.Now().Add(-time.Hour))
	path := map[string]any{"arg": evil, "given": evil, "resolved": evil, "root": evil, "rel": evil, "verdict": "deny", "code": evil}
	for _, kind := range []string{"asked", "answered", "call", "end", "note", "roots-changed", "list-changed", "roots-answered", "start", evil} {
		l.add(map[string]any{"kind": kind, "server": evil, "call": "c7f3a2", "method": evil, "tool": evil, "verdict": "deny", "code": evil, "reason": evil, "fix": evil, "rule": evil, "text": evil,
			"ask": evil, "args": map[string]string{"x": evil}, "from": evil, "to": evil, "outcome": evil, "ms": 1e300, "bytes": 1 << 62, "paths": []any{path}, "version": evil, "layers": []string{evil},
			"roots": []any{map[string]string{"uri": evil, "name": evil}}, "before": []any{map[string]string{"name": evil, "path": evil, "access": evil}}, "after": []any{map[string]string{"name": evil, "path": evil}}})
	}
	// And what is in no chain.
	raw, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	f := l.file
	fmt.Fprintf(f, `{"seq":-1,"time":"9999-01-01T00:00:00Z","kind":"call","call":"../../x","server":%s,"tool":%s,"verdict":%s,"reason":%s,"ms":-5,"bytes":-5,"paths":[{"arg":"","given":%s,"verdict":"deny"}]}`+"\n[[[[\n", raw, raw, raw, raw, raw)
	fmt.Fprintf(f, `{"seq":9,"time":"2026-01-01T00:00:00Z","kind":"call","call":"c7f3a2","server":"a","tool":"b","args":%s}`+"\n", strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
	p := h.open()
	p.do(chromedp.Navigate(p.at + "/#/log"))
	p.until(records + ` > 5`)
	p.looks("log-hostile")
	p.do(chromedp.Click(`a[href="#/log/c7f3a2"]`))
	p.shows("What happened")
	p.looks("story-hostile")
	for _, hash := range []string{"#/log?text=" + strings.Repeat("%22", 300), "#/log?since=never", "#/log/%3Cscript%3E", "#/log?before=1&server=%00"} {
		p.do(chromedp.Navigate(p.at + "/" + hash))
		p.do(chromedp.Reload())
		p.until(`document.querySelector("main").innerText.length > 20`)
	}
	if made := eval[int](p.page, `document.querySelectorAll("main img, main script, main iframe").length`); made > 0 {
		t.Errorf("%d elements of a peer's are on the page", made)
	}
	p.calm()
}

// TestVerifyOnThePage tries a server from the page, up to its report; and stops.
func TestVerifyOnThePage(t *testing.T) {
	h := newHome(t, fmt.Sprintf("[[roots]]\npath = \"/nowhere/either\"\n\n[server.naughty]\ncommand = %q\nargs = [\"fs\", \"--log\", \"off\", \"--ask\", \"client\", \"{roots}\"]\n\n[server.gone]\ncommand = \"/nowhere/at/all\"\n", guard))
	if err := os.WriteFile(filepath.Join(h.dir, "home", ".claude.json"), []byte(`{"mcpServers":{"of a client":{"command":"`+guard+`","args":["fs","/tmp"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := h.open()
	p.do(chromedp.Navigate(p.at + "/#/verify"))
	p.shows("naughty")
	p.shows("of a client")
	p.shows("Claude Code")
	p.looks("verify")
	p.do(chromedp.Click(`button[aria-label="Try naughty"]`))
	p.shows("Trying naughty")
	p.until(`document.querySelector("progress")?.value > 3`)
	p.looks("verify-running")
	p.do(chromedp.Click(`//button[text()="Stop"]`))
	p.shows("naughty was stopped")

	p.do(chromedp.Click(".check input"))
	p.do(chromedp.Click(`button[aria-label="Try gone"]`))
	p.shows("gone could not be tried")
	p.shows("/nowhere/at/all")
	p.do(chromedp.Click(`button[aria-label="Try naughty"]`))
	p.shows("Open the report")
	p.shows("naughty keeps its boundary")
	p.looks("verify-done")
	report := eval[string](p.page, `import("/web/lib/api.js").then(m => m.link("/api/verify/report")).then(fetch).then(async r => r.headers.get("Content-Security-Policy") + await r.text())`)
	if !strings.HasPrefix(report, "sandbox; default-src 'none'") || !strings.Contains(report, "<!doctype html>") || !strings.Contains(report, "roots/list") {
		t.Errorf("the report is %.300q", report)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "rootbound-ui-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	// A configuration that cannot be read is not one without servers.
	if err := os.WriteFile(h.configFile(), []byte("active = \"x\"\n[server"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Reload())
	p.shows("rootbound.toml")
	p.shows("rootbound.toml:2:")
	p.calm()
}
