package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// served is a page that is served, and what was reported.
type served struct {
	t   *testing.T
	ui  *UI
	at  string // http://HOST:PORT
	end func()
}

func serve(t *testing.T, o Options) *served {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	u := New(o)
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Serve(ctx, l) }()
	s := &served{t: t, ui: u, at: "http://" + l.Addr().String()}
	s.end = func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	}
	t.Cleanup(func() { stop(); http.DefaultClient.CloseIdleConnections() })
	return s
}

// browser is who asks: what it has and what it says of itself.
type browser struct {
	*served
	cookie, key string
	header      map[string]string
}

func (b *browser) do(method, path, body string) (status int, header http.Header, text string) {
	b.t.Helper()
	r := b.request(method, path, body)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range res.Cookies() {
		if c.Name == cookieName(r.Host) {
			b.cookie = c.Value
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
				b.t.Errorf("the cookie is %v", c)
			}
		}
	}
	return res.StatusCode, res.Header, string(out)
}

func (b *browser) request(method, path, body string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.at+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if b.cookie != "" {
		r.AddCookie(&http.Cookie{Name: cookieName(r.Host), Value: b.cookie})
	}
	if b.key != "" {
		r.Header.Set(keyHeader, b.key)
	}
	for k, v := range b.header {
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	return r
}

func (s *served) link() string {
	_, token, _ := strings.Cut(s.ui.Link(addr(s.at)), "#open=")
	return token
}

type addr string

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return strings.TrimPrefix(string(a), "http://") }

// letIn is a browser that has opened the link.
func (s *served) letIn() *browser {
	s.t.Helper()
	b := &browser{served: s}
	status, _, text := b.do("POST", "/api/open", `{"token":"`+s.link()+`"}`)
	var out struct{ Key string }
	if status != 200 || json.Unmarshal([]byte(text), &out) != nil || out.Key == "" || b.cookie == "" {
		s.t.Fatalf("opening the link: %d %s", status, text)
	}
	b.key = out.Key
	return b
}

func TestListenIsForThisMachineAlone(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "localhost:0", "example.com:80", "127.0.0.1", "", "[fe80::1%lo]:0"} {
		if l, err := Listen(address); err == nil {
			t.Errorf("it listens at %q", address)
			l.Close()
		}
	}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0"} {
		l, err := Listen(address)
		if err != nil {
			t.Errorf("%q: %v", address, err)
			continue
		}
		l.Close()
	}
}

func TestOnlyTheBrowserThatOpenedTheLinkIsLetIn(t *testing.T) {
	s := serve(t, Options{})
	ticket := func(b *browser) int {
		status, _, _ := b.do("POST", "/api/ticket", `{"path":"/api/events"}`)
		return status
	}
	nobody := &browser{served: s}
	if got := ticket(nobody); got != 401 {
		t.Errorf("without a session: %d", got)
	}
	for _, token := range []string{"", "x", s.link() + "x"} {
		if status, _, _ := nobody.do("POST", "/api/open", `{"token":"`+token+`"}`); status != 403 {
			t.Errorf("the token %q: %d", token, status)
		}
	}
	token := s.link()
	b := s.letIn() // a newer link
	if status, _, _ := nobody.do("POST", "/api/open", `{"token":"`+token+`"}`); status != 403 {
		t.Errorf("an older link: %d", status)
	}
	if got := ticket(b); got != 200 {
		t.Errorf("the browser that was let in: %d", got)
	}
	for name, o := range map[string]*browser{
		"without the key":      {served: s, cookie: b.cookie},
		"with another key":     {served: s, cookie: b.cookie, key: b.key + "x"},
		"without the cookie":   {served: s, key: b.key},
		"with another session": {served: s, key: b.key, cookie: "x"},
	} {
		if got := ticket(o); got != 401 {
			t.Errorf("%s: %d", name, got)
		}
	}
	other := s.letIn()
	if got := ticket(b); got != 401 {
		t.Errorf("the browser before it: %d", got)
	}
	if got := ticket(other); got != 200 {
		t.Errorf("the other browser: %d", got)
	}
}

// A browser sends the cookies of every port to every port: neither another page of ours nor another server's lock a person out.
func TestCookiesOfOtherPorts(t *testing.T) {
	one, two := serve(t, Options{}).letIn(), serve(t, Options{}).letIn()
	for _, b := range []*browser{one, two} {
		r := b.request("POST", "/api/ticket", `{"path":"/api/events"}`)
		own := r.Header.Get("Cookie")
		first := one.request("GET", "/", "").Header.Get("Cookie") + "; " + two.request("GET", "/", "").Header.Get("Cookie")
		if strings.Count(first, cookieName(r.Host)+"=") != 1 {
			t.Errorf("the cookies of two pages are %q", first)
		}
		r.Header.Set("Cookie", cookieName(r.Host)+"=tossed; "+first)
		if !strings.Contains(first, own) {
			t.Fatalf("%q is not in %q", own, first)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("let in: %s", res.Status)
		}
	}
}

func TestALinkWorksOnce(t *testing.T) {
	s := serve(t, Options{})
	token := s.link()
	b := &browser{served: s}
	for i, want := range []int{200, 403, 403} {
		if got, _, _ := b.do("POST", "/api/open", `{"token":"`+token+`"}`); got != want {
			t.Errorf("time %d: %d, want %d", i+1, got, want)
		}
	}
}

func TestOtherOriginsAndHostsAreRefused(t *testing.T) {
	s := serve(t, Options{})
	b := s.letIn()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.at, "http://"))
	for name, h := range map[string]map[string]string{
		"a name that leads here":       {"Host": "evil.example:" + port},
		"localhost":                    {"Host": "localhost:" + port},
		"another port":                 {"Host": "127.0.0.1:1"},
		"no port":                      {"Host": "127.0.0.1"},
		"another origin":               {"Origin": "https://evil.example"},
		"another port as origin":       {"Origin": "http://127.0.0.1:1"},
		"no origin":                    {"Origin": "null"},
		"a site of another name":       {"Sec-Fetch-Site": "cross-site"},
		"a site on another port":       {"Sec-Fetch-Site": "same-site"},
		"a person who typed an API in": {"Sec-Fetch-Site": "none"},
	} {
		for _, method := range []string{"POST", "GET"} {
			if method == "GET" && h["Origin"] != "" {
				continue // a browser sends none with these; the next header says it, and no answer may be read
			}
			path, body := "/api/ticket", `{"path":"/api/events"}`
			if method == "GET" {
				path, body = "/api/events", ""
			}
			o := &browser{served: s, cookie: b.cookie, key: b.key, header: h}
			if status, _, _ := o.do(method, path, body); status != 403 && status != 421 {
				t.Errorf("%s, %s: %d", name, method, status)
			}
		}
	}
	o := &browser{served: s, header: map[string]string{"Host": "evil.example:" + port}}
	if status, _, _ := o.do("GET", "/", ""); status != 421 {
		t.Errorf("the document by another name: %d", status)
	}
	o.header = map[string]string{"Origin": "https://evil.example"}
	if status, _, _ := o.do("POST", "/api/open", `{"token":"`+s.link()+`"}`); status != 403 {
		t.Errorf("a link that another origin opens: %d", status)
	}
	o.header = map[string]string{"Origin": s.at, "Sec-Fetch-Site": "same-origin"}
	if status, _, _ := o.do("POST", "/api/open", `{"token":"`+s.link()+`"}`); status != 200 {
		t.Errorf("our own: %d", status)
	}
}

func TestHeaders(t *testing.T) {
	s := serve(t, Options{})
	b := &browser{served: s}
	for _, path := range []string{"/", "/web/app.js", "/web/style.css", "/api/events", "/nothing", "/web/", "/web/lib"} {
		_, h, _ := b.do("GET", path, "")
		if got := h.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s: the policy is %q", path, got)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	for _, word := range []string{"unsafe", "http:", "https:", "data:", "*"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy has %q: %s", word, policy)
		}
	}
}

func TestATicketIsForOneRequest(t *testing.T) {
	s := serve(t, Options{})
	b := s.letIn()
	make := func(path string) string {
		_, _, text := b.do("POST", "/api/ticket", `{"path":"`+path+`"}`)
		var out struct{ Href string }
		if json.Unmarshal([]byte(text), &out) != nil || out.Href == "" {
			t.Fatalf("a ticket for %s: %s", path, text)
		}
		return out.Href
	}
	fetch := func(b *browser, path string) int {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		res, err := http.DefaultClient.Do(b.request("GET", path, "").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	plain := &browser{served: s, cookie: b.cookie} // what the browser sends by itself
	href := make("/api/events?a=1")
	if got := fetch(&browser{served: s}, href); got != 401 {
		t.Errorf("without the cookie: %d", got)
	}
	if got := fetch(plain, href); got != 200 {
		t.Errorf("the first time: %d", got)
	}
	if got := fetch(plain, href); got != 401 {
		t.Errorf("the second time: %d", got)
	}
	href = make("/api/events?a=1")
	if got := fetch(plain, strings.Replace(href, "a=1", "a=2", 1)); got != 401 {
		t.Errorf("for something else: %d", got)
	}
	for _, path := range []string{"/", "https://evil.example/", "//evil.example/api/"} {
		if status, _, _ := b.do("POST", "/api/ticket", `{"path":"`+path+`"}`); status != 400 {
			t.Errorf("a ticket for %s: %d", path, status)
		}
	}
}

func TestRequestsHaveAnEnd(t *testing.T) {
	s := serve(t, Options{})
	b := s.letIn()
	if status, _, _ := b.do("POST", "/api/ticket", `{"path":"`+strings.Repeat("x", maxBody)+`"}`); status != 413 {
		t.Errorf("a long request: %d", status)
	}
	for _, body := range []string{"{", `{"path":1}`, `{"other":""}`, "[]"} {
		if status, _, _ := b.do("POST", "/api/ticket", body); status != 400 {
			t.Errorf("%s: %d", body, status)
		}
	}
	b.header = map[string]string{"Content-Type": "text/plain"} // what a form of another site may send
	if status, _, _ := b.do("POST", "/api/ticket", `{"path":"/api/events"}`); status != 415 {
		t.Errorf("a form: %d", status)
	}
}

// stream reads events.
type stream struct {
	t  *testing.T
	in *bufio.Scanner
}

func (b *browser) stream() *stream {
	b.t.Helper()
	res, err := http.DefaultClient.Do(b.request("GET", "/api/events", ""))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("the stream: %s", res.Status)
	}
	in := bufio.NewScanner(res.Body)
	in.Buffer(nil, 64<<20)
	return &stream{b.t, in}
}

// next returns the next event, or "" when the stream ended.
func (s *stream) next() (kind, key, value string) {
	s.t.Helper()
	for s.in.Scan() {
		line := s.in.Text()
		if k, ok := strings.CutPrefix(line, "event: "); ok {
			kind = k
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			var e struct {
				Key   string
				Value json.RawMessage
			}
			if err := json.Unmarshal([]byte(d), &e); err != nil {
				s.t.Fatal(err)
			}
			if kind == "paused" { // which is told at the beginning, whenever that is known
				continue
			}
			return kind, e.Key, string(e.Value)
		}
	}
	return "", "", ""
}

func TestStream(t *testing.T) {
	s := serve(t, Options{Version: "v1"})
	b := s.letIn()
	s.ui.hub.set("thing", "a", 1)
	s.ui.hub.set("thing", "b", 2)
	s.ui.hub.drop("thing", "b")
	in := b.stream()
	want := func(kind, key, value string) {
		t.Helper()
		if k, n, v := in.next(); k != kind || n != key || v != value {
			t.Errorf("the stream says %s %s %s, want %s %s %s", k, n, v, kind, key, value)
		}
	}
	want("thing", "a", "1")
	want("ready", "", `{"version":"v1"}`)
	s.ui.hub.set("thing", "c", "x\ny")
	want("thing", "c", `"x\ny"`)
	s.ui.hub.set("thing", "c", "x\ny") // as it was
	s.ui.hub.drop("thing", "a")
	want("thing", "a", "null")
	s.ui.hub.tell("said", true)
	want("said", "", "true")
	s.letIn()
	want("", "", "") // another browser was let in
}

func TestASlowPageIsToldTheLatest(t *testing.T) {
	h := newHub()
	s := h.follows()
	for i := range 5000 {
		h.set("n", "a", i)
		h.tell("said", i)
	}
	list, _ := h.take(s)
	if len(list) > maxOnce+2 || string(list[0].value) != "4999" || list[1].kind != "lost" {
		t.Errorf("%d events wait, the first of them %s %s", len(list), list[0].kind, list[0].value)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	s := serve(t, Options{})
	s.letIn().stream()
	s.end()
}
