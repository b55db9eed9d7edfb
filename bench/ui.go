package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// The rounds of the ui case: guards that run, questions that are asked, and how often the page is opened.
const (
	uiGuards    = 20
	uiQuestions = 40
	uiPaints    = 15
	uiRecords   = 1_000_000
)

// uiHome is a home with a page and guards in it.
type uiHome struct {
	b   *bench
	env []string
	at  string // the page's origin
	cmd *exec.Cmd
}

// command is the program in this home.
func (h *uiHome) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.b.guard, args...)
	cmd.Env = h.env
	return cmd
}

// ui measures the local page: beside a long log and many guards, what it holds in memory, how long after a call its question is
// told to the page, and how long a browser takes to paint.
func ui(b *bench) (list []result, err error) {
	dir := filepath.Join(b.dir, "ui")
	run, state := filepath.Join(dir, "run"), filepath.Join(dir, "state")
	for _, d := range []string{run, state} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	h := &uiHome{b: b, env: append(os.Environ(), "HOME="+b.home, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+run, "XDG_STATE_HOME="+state, "CI=")}
	if err := writeLog(filepath.Join(state, "rootbound", "log"), uiRecords); err != nil {
		return nil, err
	}
	var guards []*uiGuard
	defer func() {
		for _, g := range guards {
			err = errors.Join(err, g.end())
		}
	}()
	for range uiGuards {
		g, err := h.guard()
		if err != nil {
			return nil, err
		}
		guards = append(guards, g)
	}
	link, err := h.serve()
	if err != nil {
		return nil, err
	}
	defer func() {
		h.cmd.Process.Signal(os.Interrupt)
		err = errors.Join(err, h.cmd.Wait())
	}()
	seen, err := h.follow(link)
	if err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second) // idle is what it is when every guard was found
	idle, err := memoryOf(h.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	var told []float64
	for i := range uiQuestions {
		g := guards[i%len(guards)]
		began := time.Now()
		if err := g.ask(i); err != nil {
			return nil, err
		}
		select {
		case at, ok := <-seen:
			if !ok {
				return nil, errors.New("the stream of the page has ended")
			}
			told = append(told, float64(at.Sub(began))/1e6)
		case <-time.After(10 * time.Second):
			return nil, errors.New("a question is not told to the page")
		}
	}
	paints, words, err := h.paints()
	if err != nil {
		return nil, err
	}
	return []result{
		summary(fmt.Sprintf("rootbound ui, idle, with %d guards and %d records, resident", uiGuards, uiRecords), "MB", []float64{idle.resident}).within(60),
		summary("from the call to the question on the page's stream", "ms", told).within(100),
		summary("from the link to the first paint in Chromium", "ms", paints).within(200),
		summary("the same of a document of one word", "ms", words),
	}, nil
}

// uiGuard is a guard whose calls are asked about.
type uiGuard struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (h *uiHome) guard() (*uiGuard, error) {
	cmd := h.command("fs", "--ask", "always", "--root", h.b.root)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	g := &uiGuard{cmd, in, bufio.NewReader(out)}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if _, err := g.out.ReadBytes('\n'); err != nil {
		return nil, errors.Join(err, g.end())
	}
	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return g, err
}

// ask has it asked for a call, which nobody answers.
func (g *uiGuard) ask(id int) error {
	_, err := fmt.Fprintf(g.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"new-%[1]d.txt","content":"one\ntwo\n"}}}`+"\n", id)
	return err
}

func (g *uiGuard) end() error {
	g.in.Close()
	return g.cmd.Wait()
}

// serve starts the page, and returns its link.
func (h *uiHome) serve() (string, error) {
	h.cmd = h.command("ui")
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		return "", err
	}
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("reading the link of the page: %w", err)
	}
	h.at, _, _ = strings.Cut(link, "/?")
	return strings.TrimSpace(link), nil
}

// follow opens the link as the page does, and tells when each question was told.
func (h *uiHome) follow(link string) (<-chan time.Time, error) {
	_, token, _ := strings.Cut(link, "#open=")
	res, err := http.Post(h.at+"/api/open", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var in struct{ Key string }
	if err := json.NewDecoder(res.Body).Decode(&in); err != nil || len(res.Cookies()) == 0 {
		return nil, fmt.Errorf("opening the link: %s, %v", res.Status, err)
	}
	r, err := http.NewRequest(http.MethodGet, h.at+"/api/events", nil)
	if err != nil {
		return nil, err
	}
	r.AddCookie(res.Cookies()[0])
	r.Header.Set("Rootbound-Key", in.Key)
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	seen := make(chan time.Time, uiQuestions)
	go func() {
		defer close(seen)
		defer stream.Body.Close()
		s := bufio.NewReader(stream.Body)
		for {
			line, err := s.ReadBytes('\n')
			if err != nil {
				return
			}
			if bytes.HasPrefix(line, []byte("event: question")) {
				seen <- time.Now()
			}
		}
	}()
	return seen, nil
}

// paints opens the page in browsers that know nothing of it, and a document of one word. None of them is let in, which is found
// out after the paint.
func (h *uiHome) paints() (page, word []float64, err error) {
	if _, err := lookPath("chromium", "chromium-browser", "google-chrome"); err != nil {
		return nil, nil, err
	}
	least := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><title>x</title>word")
	}))
	defer least.Close()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	browser, cancel := chromedp.NewContext(allocator)
	defer cancel()
	if err := chromedp.Do(browser); err != nil {
		return nil, nil, fmt.Errorf("starting a browser: %w", err)
	}
	for range uiPaints {
		for address, list := range map[string]*[]float64{h.at + "/": &page, least.URL: &word} {
			ms, err := paint(browser, address)
			if err != nil {
				return nil, nil, fmt.Errorf("opening %s: %w", address, err)
			}
			*list = append(*list, ms)
		}
	}
	return page, word, nil
}

func paint(browser context.Context, address string) (float64, error) {
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		return 0, err
	}
	return chromedp.Run(ctx, chromedp.Evaluate[float64](`new Promise(done => {
		new PerformanceObserver(list => { const p = list.getEntriesByName("first-contentful-paint")[0]; if (p) done(p.startTime) }).observe({type: "paint", buffered: true});
	})`, chromedp.EvalAwaitPromise))
}
