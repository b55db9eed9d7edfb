package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// home is a person's own directories, with guards in them and a page that finds them.
type home struct {
	t   *testing.T
	dir string
	env []string
}

// newHome makes one, whose configuration is config (TOML).
func newHome(t *testing.T, config string) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir()}
	for name, dir := range map[string]string{"HOME": "home", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run"} {
		if err := os.MkdirAll(filepath.Join(h.dir, dir, "rootbound"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.env = append(h.env, name+"="+filepath.Join(h.dir, dir))
	}
	if err := os.WriteFile(filepath.Join(h.dir, "config", "rootbound", "rootbound.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// command is a command of the program, in this home.
func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(guard, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "XDG_") || strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "CI=")
	}), h.env...)
	return cmd
}

// connect connects a client to a guard in this home.
func (h *home) connect(args ...string) *mcp.ClientSession {
	h.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1.2"}, nil)
	cmd := h.command(args...)
	cmd.Stderr = h.t.Output()
	session, err := client.Connect(h.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { session.Close() })
	return session
}

// calling is a call that is on its way.
type calling struct {
	t    *testing.T
	done chan struct{}
	res  *mcp.CallToolResult
	err  error
}

func (h *home) call(s *mcp.ClientSession, tool string, arguments any) *calling {
	c := &calling{t: h.t, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.res, c.err = s.CallTool(h.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	}()
	return c
}

// text is what the client reads.
func (c *calling) text() string {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatal("the call has no answer")
	}
	if c.err != nil {
		return "error: " + c.err.Error()
	}
	var all []string
	for _, b := range c.res.Content {
		if text, ok := b.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// tab is our page in a browser.
type tab struct {
	*page
	link string
	at   string // its origin
}

// open serves the page of this home and opens it. A tab that is loaded anew before it is let in has used up its link for nothing.
func (h *home) open() *tab {
	h.t.Helper()
	p := h.browse(h.serve())
	p.do(chromedp.Navigate(p.link))
	p.until(`location.hash.startsWith("#/")`)
	return p
}

// browse is a browser for a link, which is not opened yet.
func (h *home) browse(link string) *tab {
	h.t.Helper()
	at, _, _ := strings.Cut(link, "/?")
	return &tab{newPage(h.t, func(address string) bool { return strings.HasPrefix(address, at+"/") }), link, at}
}

// press presses a key when the question has been shown for long enough that it counts.
func (p *tab) press(keys string) {
	p.t.Helper()
	p.until(`document.querySelector("main [data-key='1']") !== null`)
	p.do(chromedp.Sleep(settled))
	p.key(keys)
}

// key presses one key, as a keyboard does: what the page keeps to itself writes nothing.
func (p *tab) key(key string) {
	p.t.Helper()
	command(p.page, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key})
	command(p.page, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key})
}

// settled is how long a question is shown before a yes counts, and some more.
const settled = 700 * time.Millisecond

// serve serves the page, and returns its link.
func (h *home) serve(args ...string) string {
	h.t.Helper()
	cmd := h.command(append([]string{"ui"}, args...)...)
	cmd.Stderr = h.t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			h.t.Errorf("rootbound ui ended with %v", err)
		}
	})
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatalf("rootbound ui prints no link: %v", err)
	}
	return strings.TrimSpace(link)
}

// askForWrites are rules that ask for what writes, and let it be remembered for a tool, and a server of files.
var askForWrites = fmt.Sprintf(`
[[rule]]
match = { tool = "write_file" }
verdict = "ask"
remember = "tool"
reason = "Files are written by hand here."

[[rule]]
match = { tool = "edit_file" }
verdict = "ask"
remember = "tool"
reason = "Files are written by hand here."

[[rule]]
match = { tool = "list_directory" }
verdict = "allow"

[server.files]
command = %q
args = [%q, "{roots}"]

[server.files.tool.write_file]
effect = "write"

[server.files.tool.edit_file]
effect = "write"
`, tsFilesystem.command[0], tsFilesystem.command[1])

// TestAQuestionOnThePage has a real client call a real server: the question is on the page, and a key answers it.
func TestAQuestionOnThePage(t *testing.T) {
	needNode(t)
	h := newHome(t, askForWrites)
	dir := workspace(t)
	s := h.connect("run", "--server", "files", "--ask", "always", "--root", dir)
	p := h.open()
	p.shows("tester")
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	p.shows("Nothing waits for you")

	file := filepath.Join(dir, "notes.txt")
	first := h.call(s, "write_file", map[string]any{"path": file, "content": "one\ntwo\n"})
	p.shows("wants to write")
	p.shows(file)
	p.shows("Files are written by hand here")
	p.looks("question")
	p.press("2")
	if got := first.text(); !strings.Contains(got, "Successfully wrote") {
		t.Errorf("the model reads %q", got)
	}
	if text, _ := os.ReadFile(file); string(text) != "one\ntwo\n" {
		t.Errorf("the file has %q", text)
	}
	p.shows("Nothing waits for you")
	if out, err := h.command("log").CombinedOutput(); err != nil || !strings.Contains(string(out), "allow once, said by a person on the page: ") {
		t.Errorf("the log says %v\n%s", err, out)
	}

	// A no, with a note for the model.
	second := h.call(s, "write_file", map[string]any{"path": file, "content": "one\nthree\n"})
	p.shows("a file that exists")
	p.looks("diff")
	p.press("n")
	p.do(chromedp.KeyEvent("use the other file" + kb.Enter))
	if got := second.text(); !strings.Contains(got, "and says: use the other file") || !second.res.IsError {
		t.Errorf("the model reads %q", got)
	}
	p.shows("Nothing waits for you")

	// Other arguments: judged while they are written, run, and told.
	third := h.call(s, "write_file", map[string]any{"path": file, "content": "big", "note": json.RawMessage("9007199254740993")})
	p.press("e")
	p.until(`document.querySelector("textarea") !== null`)
	fill := func(text string) {
		p.run(`document.querySelector("textarea").select()`)
		command(p.page, input.InsertText, input.InsertTextParams{Text: text})
	}
	fill(`{"path": "/etc/passwd", "content": "x"}`)
	p.shows("Refused: ")
	p.until(`document.querySelector("[data-key='2']").disabled`)
	fill(`{"path": 7`)
	p.shows("This is not JSON")
	other := filepath.Join(dir, "other.txt")
	text, _ := json.Marshal(map[string]string{"path": other, "content": "small"})
	fill(string(text))
	p.shows("This may run.")
	p.shows(other)
	p.looks("edited")
	p.do(chromedp.Sleep(settled), chromedp.Click("[data-key='2']"))
	if got := third.text(); !strings.HasPrefix(got, "The user changed the arguments of this call before it ran") || !strings.Contains(got, `"path" was changed: "`+other+`"`) {
		t.Errorf("the model reads %q", got)
	}
	if text, _ := os.ReadFile(other); string(text) != "small" {
		t.Errorf("the file has %q", text)
	}
	p.shows("Nothing waits for you")

	// A yes for the session: the next one is not asked for.
	fourth := h.call(s, "write_file", map[string]any{"path": file, "content": "four"})
	p.press("3") // which shows what it means first
	p.do(chromedp.EmulateViewport(360, 640))
	p.until(`document.querySelector(".longer").open && innerHeight === 640`)
	if part := eval[float64](p.page, `document.querySelector(".asked .bar").getBoundingClientRect().height / innerHeight`); part > 0.5 {
		t.Errorf("the answers take %.2f of a small screen, over what they are to", part)
	}
	p.theme("light", 1280)
	p.press("3")
	if got := fourth.text(); !strings.Contains(got, "Successfully wrote") {
		t.Errorf("the model reads %q", got)
	}
	if got := h.call(s, "write_file", map[string]any{"path": file, "content": "five"}).text(); !strings.Contains(got, "Successfully wrote") {
		t.Errorf("the model reads %q", got)
	}

	// Nothing is answered by a key that was meant for the question before.
	p.shows("Nothing waits for you")
	edit := h.call(s, "edit_file", map[string]any{"path": file, "edits": []map[string]string{{"oldText": "five", "newText": "six"}}})
	p.run(`new Promise(done => {
		const look = () => {
			if (!document.querySelector("main [data-key='2']")) return requestAnimationFrame(look);
			document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "2", bubbles: true}));
			done();
		};
		look();
	})`)
	p.shows("Another question is shown now")
	p.press("1")
	if got := edit.text(); !strings.Contains(got, "the user said no") {
		t.Errorf("the model reads %q", got)
	}
	p.calm()
}

// TestNowOnThePage sees what runs, and holds everything.
func TestNowOnThePage(t *testing.T) {
	needNode(t)
	h := newHome(t, askForWrites)
	dir := workspace(t)
	p := h.open()
	p.shows("No guard runs")
	p.looks("nothing")
	s := h.connect("run", "--server", "files", "--ask", "always", "--root", "work="+dir, "--ro", "docs="+t.TempDir())
	other := h.connect("fs", "--root", dir)
	p.shows("tester")
	p.shows(dir)
	if got := h.call(s, "read_file", map[string]any{"path": "/etc/passwd"}).text(); !strings.Contains(got, "outside") {
		t.Errorf("the model reads %q", got)
	}
	p.shows("/etc/passwd")
	h.call(other, "list_directory", map[string]any{"path": dir}).text()
	p.do(chromedp.Click(`//button[text()="Pause everything"]`))
	p.shows("Every call of every server is held")
	held := h.call(s, "list_directory", map[string]any{"path": dir})
	p.shows("1 question")
	p.shows("confined missing")
	p.looks("now")
	p.do(chromedp.Click(`//button[text()="Resume everything"]`))
	if got := held.text(); strings.Contains(got, "error") {
		t.Errorf("the model reads %q", got)
	}
	other.Close()
	p.until(`document.querySelectorAll(".guard").length === 1`)
	p.calm()
}

// TestThePageInChinese has every text in the other language.
func TestThePageInChinese(t *testing.T) {
	h := newHome(t, "")
	dir := workspace(t)
	s := h.connect("fs", "--ask", "always", "--root", dir)
	h.call(s, "read_text_file", map[string]any{"path": "/etc/passwd"}).text()
	p := h.open()
	p.run(`localStorage.setItem("language", "zh")`)
	p.do(chromedp.Reload())
	p.shows("当前")
	p.shows("来源：命令行")
	p.shows("以配置为准")
	p.shows("路径在根目录之外")
	p.looks("zh-now")
	c := h.call(s, "write_file", map[string]any{"path": filepath.Join(dir, "a.txt"), "content": "一\n"})
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	p.shows("想写入")
	p.shows("它会改动内容；可对其所在的根目录一并同意")
	p.shows("工具作用的依据：Rootbound（这是它自己的工具）")
	if lines := eval[int](p.page, `Math.round(document.querySelector(".waiting .place").getBoundingClientRect().height / parseFloat(getComputedStyle(document.querySelector(".waiting .place")).lineHeight))`); lines != 1 {
		t.Errorf("where it leads has %d lines in the list", lines)
	}
	if text := p.shown(); strings.Contains(text, "it changes things") || strings.Contains(text, "this program") {
		t.Errorf("it is in two languages: %s", text)
	}
	p.looks("zh-question")
	p.press("3")
	p.press("3")
	c.text()
	p.do(chromedp.Navigate(p.at + "/#/grants"))
	p.shows("经由本页")
	p.do(chromedp.Navigate(p.at + "/#/log"))
	p.until(`document.querySelector("li.record.bad a") !== null`)
	p.run(`document.querySelector("li.record.bad a").click()`)
	p.shows("当时的根目录")
	p.shows("可读写")
	p.looks("zh-story")
	p.calm()

	// A rule of the person's own, without a reason, is told by the program.
	h = newHome(t, "[[rule]]\nmatch = { tool = \"write_file\", args = { content = { any = true } } }\nverdict = \"ask\"\n")
	s = h.connect("fs", "--ask", "always", "--root", dir)
	p = h.open()
	p.run(`localStorage.setItem("language", "zh")`)
	p.do(chromedp.Reload())
	c = h.call(s, "write_file", map[string]any{"path": filepath.Join(dir, "a.txt"), "content": "x"})
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	p.shows("你的一条规则因参数 content 要求征得你的同意")
	p.press("1")
	c.text()
	p.calm()
}

// TestALinkIsForOneBrowser lets nobody in with a link that was used.
func TestALinkIsForOneBrowser(t *testing.T) {
	h := newHome(t, "")
	link := h.serve()
	p := h.browse(link)
	p.do(chromedp.Navigate(link))
	p.shows("No guard runs")
	if address := eval[string](p.page, `location.href`); strings.Contains(address, "open=") {
		t.Errorf("the token is still in the address %q", address)
	}
	p.do(chromedp.Reload())
	p.shows("No guard runs")
	p.calm()
	thief := h.browse(link)
	thief.do(chromedp.Navigate(link))
	thief.shows("This tab is not let in")
	thief.shows("This link was used already")
	thief.looks("closed")
	thief.do(chromedp.Navigate(thief.at + "/#/now"))
	thief.do(chromedp.Reload())
	thief.shows("This tab is not let in")
}

// squatter is another program that was at the port of the page before. What it serves is kept by the browser for as long as that
// likes, and a service worker of it answers, or hands on, what is asked for later.
func squatter(t *testing.T, worker string) (address string, leave func()) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=31536000")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<title>other</title><p>another program<script>navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready).then(() => document.title = "stays")</script>`)
	})
	mux.HandleFunc("/web/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=31536000")
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `document.title = "owned"`)
	})
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, worker)
	})
	s := httptest.NewServer(mux)
	return strings.TrimPrefix(s.URL, "http://"), s.Close
}

// TestWhoWasAtThePortBefore leaves what it can in the browser: copies of what the page is made of, and a service worker.
func TestWhoWasAtThePortBefore(t *testing.T) {
	for name, worker := range map[string]string{
		"hands on": `addEventListener("install", () => skipWaiting()); addEventListener("activate", (e) => e.waitUntil(clients.claim())); addEventListener("fetch", (e) => e.respondWith(fetch(e.request)))`,
		"answers":  `addEventListener("install", () => skipWaiting()); addEventListener("activate", (e) => e.waitUntil(clients.claim())); addEventListener("fetch", (e) => { if (e.request.mode === "navigate") e.respondWith(new Response("<p>still here", {headers: {"Content-Type": "text/html"}})) })`,
	} {
		t.Run(name, func(t *testing.T) {
			address, leave := squatter(t, worker)
			h := newHome(t, "")
			p := h.browse("http://" + address + "/?#")
			p.do(chromedp.Navigate("http://" + address + "/"))
			p.until(`document.title === "stays"`)
			p.run(`fetch("/web/app.js").then(r => r.text())`)
			leave()
			link := h.serve("--listen", address)
			p.do(chromedp.Navigate(link))
			if name == "answers" { // the browser asks for its script again, a moment after it has answered
				p.shows("still here")
				p.until(`navigator.serviceWorker.getRegistrations().then(l => l.length === 0)`)
				p.do(chromedp.Reload())
			}
			p.shows("No guard runs")
			p.until(`navigator.serviceWorker.getRegistrations().then(l => l.length === 0 && !navigator.serviceWorker.controller)`)
			p.do(chromedp.Reload())
			p.shows("No guard runs")
			if title := eval[string](p.page, `document.title`); !strings.Contains(title, "Rootbound") {
				t.Errorf("the page is %q", title)
			}
		})
	}
}

// TestANotification comes while the tab is hidden, and not else.
func TestANotification(t *testing.T) {
	h := newHome(t, askForWrites)
	dir := workspace(t)
	s := h.connect("fs", "--ask", "always", "--root", dir)
	p := h.open()
	p.shows("tester")
	p.run(`localStorage.setItem("notify", "on"); globalThis.told = []; globalThis.Notification = class { static permission = "granted"; constructor(title, o) { told.push(title + ": " + o.body) } }`)
	c := h.call(s, "write_file", map[string]any{"path": filepath.Join(dir, "a.txt"), "content": "x"})
	p.until(`document.title.startsWith("(1) ")`)
	p.until(`told.length === 0`)
	p.run(`Object.defineProperty(document, "hidden", {get: () => true})`)
	d := h.call(s, "write_file", map[string]any{"path": filepath.Join(dir, "b.txt"), "content": "x"})
	p.until(`told.length === 1 && told[0].includes("write_file") && told[0].includes("b.txt")`)
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	p.press("1")
	p.until(`document.title.startsWith("(1) ")`)
	p.press("1")
	c.text()
	d.text()
}

// TestThePageSeesWhatIsUnseen compares the page's own reading with that of the program.
func TestThePageSeesWhatIsUnseen(t *testing.T) {
	want, err := os.ReadFile("../internal/ui/testdata/unseen.json")
	if err != nil {
		t.Fatal(err)
	}
	p := newHome(t, "").open()
	p.shows("No guard runs")
	wrong := eval[[]string](p.page, `import("/web/lib/unseen.js").then(m => `+string(want)+`.filter(([s, v]) => m.visible(s) !== v)
		.map(([s, v]) => JSON.stringify(s) + " is " + JSON.stringify(m.visible(s)) + " and not " + JSON.stringify(v)))`)
	if len(wrong) > 0 {
		t.Errorf("%d texts are read otherwise: %q", len(wrong), wrong[:min(len(wrong), 10)])
	}
}

// hostile is what a model, or a server that steers it, may write.
const hostile = "<img src=x onerror=\"document.title='owned'\">\u202egnp.exe\u2066\u200b\x1b[2J</script><script>document.title='owned'</script>"

// TestHostileQuestions shows what was written, as text, where a person sees what is hidden, and lets nothing run.
func TestHostileQuestions(t *testing.T) {
	h := newHome(t, "[[rule]]\nmatch = {}\nverdict = \"ask\"\nremember = \"tool\"\nreason = "+fmt.Sprintf("%q", "<b>why</b>\u202e")+"\n")
	dir := workspace(t)
	name := filepath.Join(dir, "a\u202etxt.exe\u200b <b>.txt")
	if err := os.WriteFile(name, []byte("<script>one</script>\n\u202etwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := h.connect("fs", "--ask", "always", "--root", dir)
	p := h.open()
	p.shows("tester")
	p.do(chromedp.Navigate(p.at + "/#/questions"))

	c := h.call(s, "write_file", map[string]any{"path": name, "content": "<script>two</script>\n\u2066three\n\x1b[31mred\n", hostile: hostile})
	p.shows("wants to write")
	for _, want := range []string{"aU+202Etxt.exeU+200B <b>.txt", "<script>one</script>", "<script>two</script>", "U+2066three", "U+001B[31mred", "<b>why</b>U+202E"} {
		p.shows(want)
	}
	p.looks("hostile")
	p.press("1")
	c.text()
	p.shows("Nothing waits for you")

	// A name that is nobody's, in every place that a person may say yes in.
	c = h.call(s, hostile, map[string]any{"path": filepath.Join(dir, "f"), "__proto__": map[string]any{"x": 1}, "constructor": hostile})
	p.shows(`<img src=x onerror="document.title='owned'">U+202Egnp.exeU+2066U+200BU+001B[2J`)
	p.press("x")
	p.press("1")
	c.text()
	p.shows("Nothing waits for you")

	// Five megabytes, which are shown when somebody asks for them.
	big := strings.Repeat("0123456789abcdef\u202e\n", 5<<20/20)
	c = h.call(s, "write_file", map[string]any{"path": filepath.Join(dir, "big"), "content": big})
	p.shows("Show all of it (")
	if got := eval[int](p.page, `document.querySelectorAll("*").length`); got > 20_000 {
		t.Errorf("the page has %d elements", got)
	}
	p.do(chromedp.Click(`//button[contains(text(), "Show all of it")]`))
	p.until(`!document.body.innerText.includes("Show all of it")`)
	p.until(`document.querySelector(".args pre").textContent.length > 5e6`)
	p.press("1")
	c.text()
	p.shows("Nothing waits for you")

	if title := eval[string](p.page, `document.title + document.querySelectorAll("main img, main script").length`); strings.Contains(title, "owned") || !strings.HasSuffix(title, "0") {
		t.Errorf("something ran: %q", title)
	}
	p.calm()
}

// TestTenThousandQuestions neither stop the page nor are answered by mistake.
func TestTenThousandQuestions(t *testing.T) {
	h := newHome(t, "")
	dir := workspace(t)
	if out, err := h.command("approve", "pause").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := h.open()
	p.shows("Every call of every server is held")
	var calls []*calling
	for range 10 {
		s := h.connect("fs", "--root", dir)
		for range 1000 {
			calls = append(calls, h.call(s, "list_directory", map[string]any{"path": dir}))
		}
	}
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	p.shows("9,900 more, which are shown when these are done")
	if rows := eval[int](p.page, `document.querySelectorAll(".waiting li").length`); rows > 101 {
		t.Errorf("%d are in the list", rows)
	}
	if badge := eval[string](p.page, `document.querySelector("[data-page=questions] .badge").textContent + document.title`); badge != "999+(10000) Questions – Rootbound" {
		t.Errorf("the number that waits is shown as %q", badge)
	}
	// All are refused together.
	p.do(chromedp.Click(`//button[contains(text(), "Select all")]`))
	p.shows("10,000 questions selected")
	if !eval[bool](p.page, `document.querySelector(".bar button.yes").disabled`) {
		t.Error("they can be allowed together, though not all of them are shown")
	}
	p.press("1")
	p.shows("Nothing waits for you")
	for _, c := range calls {
		if got := c.text(); !strings.Contains(got, "the user refused it") {
			t.Fatalf("the model reads %q", got)
		}
	}
	p.calm()
}

// TestLikeQuestionsTogether answers several at once, each for itself.
func TestLikeQuestionsTogether(t *testing.T) {
	h := newHome(t, askForWrites)
	dir := workspace(t)
	s := h.connect("fs", "--ask", "always", "--root", dir)
	p := h.open()
	p.shows("tester")
	var calls []*calling
	for i := range 3 {
		calls = append(calls, h.call(s, "write_file", map[string]any{"path": filepath.Join(dir, fmt.Sprintf("%d.txt", i)), "content": "x"}))
	}
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	p.shows("Select all 3 like this")
	p.do(chromedp.Click(`//button[contains(text(), "Select all 3")]`))
	p.shows("3 questions selected")
	p.looks("batch")
	p.press("2")
	for i, c := range calls {
		got := c.text()
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)))
		if c.res.IsError || err != nil || string(text) != "x" {
			t.Errorf("the model reads %q, and the file has %q, %v", got, text, err)
		}
	}
	p.shows("Nothing waits for you")
	p.calm()
}

// TestAGuardDiesWithItsQuestions takes them from the page, also from among those that are selected, and says so of the one that is shown.
func TestAGuardDiesWithItsQuestions(t *testing.T) {
	h := newHome(t, askForWrites)
	dir := workspace(t)
	var pids []int
	ask := func(n int) {
		t.Helper()
		cmd := h.command("fs", "--ask", "always", "--root", dir)
		cmd.Stderr = t.Output()
		s, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		pids = append(pids, cmd.Process.Pid)
		for i := range n {
			h.call(s, "write_file", map[string]any{"path": filepath.Join(dir, fmt.Sprintf("%d-%d.txt", len(pids), i)), "content": "x"})
		}
	}
	dies := func(i int) {
		t.Helper()
		dead, err := os.FindProcess(pids[i])
		if err == nil {
			err = dead.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := h.open()
	p.do(chromedp.Navigate(p.at + "/#/questions"))
	waits := func(n int) {
		t.Helper()
		p.until(fmt.Sprintf(`document.querySelectorAll(".waiting input").length === %d`, n))
	}
	ask(2)
	waits(2)
	ask(2)
	waits(4)
	ask(1)
	waits(5)
	p.run(`document.querySelectorAll(".waiting button")[4].click()`) // that of the third is shown
	p.shows("3-0.txt")
	for i := range 4 {
		p.run(fmt.Sprintf(`document.querySelectorAll(".waiting input")[%d].click()`, i))
	}
	p.shows("4 questions selected")
	dies(0)
	waits(3)
	p.shows("2 questions selected")
	dies(1)
	waits(1)
	p.until(`document.querySelector(".asked h2").innerText.includes("3-0.txt")`)
	p.press("e")
	p.until(`document.querySelector("textarea") !== null`)
	dies(2)
	p.shows("Nothing waits for you")
	p.shows("was answered elsewhere, withdrawn")
	p.calm()
}
