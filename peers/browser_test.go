package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// browser is a Chromium without a window, driven over two pipes.
type browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	n       int
	session string
	// complaints are what the page said on its console, or asked for.
	complaints []string
	loaded     bool
}

type browserMessage struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// newBrowser starts one, with one page.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		missing(t, "finding a browser: there is no chromium")
	}
	commands, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{commands, answers} // it reads 3 and writes 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	answers.Close()
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		in.Close() // with which it ends
		out.Close()
		cmd.Wait()
	})
	var target struct{ TargetID, SessionID string }
	b.do("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.do(domain+".enable", nil, nil)
	}
	return b
}

// do has something done, and puts what comes of it into result.
func (b *browser) do(method string, params map[string]any, result any) {
	b.t.Helper()
	b.n++
	m := map[string]any{"id": b.n, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		got := b.next(method)
		if got.ID != b.n {
			continue
		}
		if got.Error != nil {
			b.t.Fatalf("%s: %s", method, got.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(got.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

func (b *browser) next(waiting string) browserMessage {
	b.t.Helper()
	text, err := b.out.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("%s: the browser ended: %v", waiting, err)
	}
	var m browserMessage
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Page.loadEventFired":
		b.loaded = true
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
		b.complaints = append(b.complaints, m.Method+" "+string(m.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		json.Unmarshal(m.Params, &p)
		if !strings.HasPrefix(p.Request.URL, "file://") || !strings.HasSuffix(p.Request.URL, ".html") {
			b.complaints = append(b.complaints, "it asked for "+p.Request.URL)
		}
	}
	return m
}

// open shows a file, in a window so wide.
func (b *browser) open(path, scheme string, width int) {
	b.t.Helper()
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.loaded = false
	b.do("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for !b.loaded {
		b.next("loading the page")
	}
}

// eval returns what an expression of the page's comes to.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &got)
	if got.ExceptionDetails != nil {
		b.t.Fatalf("evaluating in the page: %s", got.ExceptionDetails)
	}
	if err := json.Unmarshal(got.Result.Value, result); err != nil {
		b.t.Fatal(err)
	}
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
	b := newBrowser(t)
	for name, args := range reports {
		file := filepath.Join(dir, name+".html")
		if out, err := exec.CommandContext(t.Context(), guard, append([]string{"verify", "--html", file}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{360, 1280} {
				t.Run(fmt.Sprintf("%s, %s, %d", name, scheme, width), func(t *testing.T) {
					b.t, b.complaints = t, nil
					b.open(file, scheme, width)
					var first, page string
					b.eval(`document.body.innerText.slice(0, 400)`, &first)
					if !strings.Contains(first, "Does it keep its boundary?") || !strings.Contains(first, " held") {
						t.Errorf("it begins with %q", first)
					}
					b.eval(`getComputedStyle(document.body).backgroundColor`, &page)
					if dark := page != "rgb(255, 255, 255)"; dark != (scheme == "dark") {
						t.Errorf("the page is %s", page)
					}
					var unread []string
					b.eval(hidden, &unread)
					if len(unread) > 0 {
						t.Errorf("%d texts cannot be read: %q", len(unread), unread[:min(5, len(unread))])
					}
					var wide int
					b.eval(`document.documentElement.scrollWidth`, &wide)
					if wide > width {
						t.Errorf("the page is %d wide", wide)
					}
					if len(b.complaints) > 0 {
						t.Errorf("the page complains, or asks for more: %q", b.complaints)
					}
				})
			}
		}
	}
}
