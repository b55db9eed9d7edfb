package fsserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

var update = flag.Bool("update", false, "write the golden files")

var eras = []exchange.Era{exchange.Legacy, exchange.Modern}

// modernMeta is what a stateless request says of itself.
const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func newServer(t testing.TB) *Server {
	s := New(Options{Name: "files", Title: "Files", Version: "1.2"})
	t.Cleanup(s.Close)
	return s
}

// resolve makes a root of a directory, under its own path.
func resolve(t testing.TB, path string, access roots.Access) roots.Dir {
	t.Helper()
	d, err := roots.Resolve(path, roots.ResolveOptions{Access: access, Origin: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request makes a request in the words of an era. Params are a JSON object or "".
func request(era exchange.Era, method, params string, set roots.Set) *exchange.Request {
	if era == exchange.Modern {
		params = string(wire.SetMember([]byte(params), []byte(modernMeta), "_meta"))
	}
	var p []byte
	if params != "" {
		p = []byte(params)
	}
	return &exchange.Request{Msg: wire.NewRequest([]byte("7"), method, p), Era: era, Roots: set}
}

// ask sends a request and returns its result or error, without what every result of the era has.
func ask(t testing.TB, s *Server, r *exchange.Request) string {
	t.Helper()
	o := exchange.Do(t.Context(), s, r)
	if o.Msg == nil {
		t.Fatalf("%s: cancelled", r.Msg.Method())
	}
	if o.Msg.Error() != nil {
		return string(o.Msg.Error())
	}
	result := o.Msg.Result()
	if r.Era == exchange.Modern {
		if got := wire.GetString(result, "resultType"); got != "complete" {
			t.Errorf("%s: resultType is %q", r.Msg.Method(), got)
		}
		if info, _ := wire.Get(result, "_meta", exchange.MetaServer); string(info) != `{"name":"files","title":"Files","version":"1.2"}` {
			t.Errorf("%s: serverInfo is %s", r.Msg.Method(), info)
		}
		result = wire.DeleteMember(wire.DeleteMember(result, "resultType"), "_meta")
	}
	return string(result)
}

// use calls a tool and returns its text, and whether it is an error. It holds the result to its shape.
func use(t testing.TB, s *Server, era exchange.Era, set roots.Set, tool, arguments string) (text string, isError bool) {
	t.Helper()
	params := `{"name":"` + tool + `"}`
	if arguments != "" {
		params = `{"name":"` + tool + `","arguments":` + arguments + `}`
	}
	got := ask(t, s, request(era, "tools/call", params, set))
	var result struct {
		Content           []contentBlock
		StructuredContent *struct{ Content json.RawMessage }
		IsError           bool
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(got), &result); err != nil || len(result.Content) == 0 {
		t.Fatalf("%s %s: %v, result %s", tool, arguments, err, got)
	}
	text = result.Content[0].Text
	switch structured := result.StructuredContent; {
	case result.IsError && (structured != nil || result.Content[0].Type != "text" || len(result.Content) != 1):
		t.Errorf("%s %s: an error that is not one text: %s", tool, arguments, got)
	case result.IsError && era == exchange.Legacy && result.Meta[metaCode] == nil:
		t.Errorf("%s %s: an error without a code: %s", tool, arguments, got)
	case result.IsError:
	case structured == nil:
		t.Errorf("%s %s: no structuredContent: %s", tool, arguments, got)
	case structured.Content[0] == '"' && unquote(structured.Content) != text, structured.Content[0] == '[' && !strings.Contains(got, `"content":`+string(structured.Content)+`,"str`):
		t.Errorf("%s %s: structuredContent is not the content: %s", tool, arguments, got)
	}
	return text, result.IsError
}

// contentBlock is one block of a result.
type contentBlock struct{ Type, Text string }

func TestMethods(t *testing.T) {
	const (
		info  = `{"name":"files","title":"Files","version":"1.2"}`
		hints = `"ttlMs":300000,"cacheScope":"private"`
	)
	handshake := func(revision string) string {
		return `{"protocolVersion":"` + revision + `","capabilities":{"tools":{},"resources":{"subscribe":true,"listChanged":true}},"serverInfo":` + info + `}`
	}
	for _, tt := range []struct {
		era                  exchange.Era
		method, params, want string
	}{
		{exchange.Legacy, "initialize", `{"protocolVersion":"2024-11-05","capabilities":{}}`, handshake("2024-11-05")},
		{exchange.Legacy, "initialize", `{"protocolVersion":"2025-03-26"}`, handshake("2025-03-26")},
		{exchange.Legacy, "initialize", `{"protocolVersion":"2025-06-18"}`, handshake("2025-06-18")},
		{exchange.Legacy, "initialize", `{"protocolVersion":"2025-11-25"}`, handshake("2025-11-25")},
		{exchange.Legacy, "initialize", `{"protocolVersion":"2026-07-28"}`, handshake("2025-11-25")},
		{exchange.Legacy, "initialize", `{"protocolVersion":"1999-01-01"}`, handshake("2025-11-25")},
		{exchange.Legacy, "initialize", `{"protocolVersion":5}`, handshake("2025-11-25")},
		{exchange.Legacy, "initialize", "", handshake("2025-11-25")},
		{exchange.Legacy, "ping", "", `{}`},
		{exchange.Legacy, "resources/list", "", `{"resources":[]}`},
		{exchange.Modern, "resources/list", "", `{"resources":[],"ttlMs":0,"cacheScope":"private"}`},
		{exchange.Modern, "resources/subscribe", `{"uri":"file:///x"}`, `{"code":-32601,"message":"method not found: \"resources/subscribe\""}`},
		{exchange.Modern, "resources/unsubscribe", `{"uri":"file:///x"}`, `{"code":-32601,"message":"method not found: \"resources/unsubscribe\""}`},
		{exchange.Legacy, "prompts/list", "{}", `{"code":-32601,"message":"method not found: \"prompts/list\""}`},
		{exchange.Legacy, "server/discover", "{}", `{"code":-32601,"message":"method not found: \"server/discover\""}`},
		{exchange.Legacy, "no\nsuch", "{}", `{"code":-32601,"message":"method not found: \"no\\nsuch\""}`},
		{exchange.Legacy, "tools/call", "", `{"code":-32602,"message":"tools/call needs a string \"name\""}`},
		{exchange.Legacy, "tools/call", `{"name":["read_text_file"]}`, `{"code":-32602,"message":"tools/call needs a string \"name\""}`},
		{exchange.Modern, "server/discover", "",
			`{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{},"resources":{"subscribe":true}},` + hints + `}`},
		{exchange.Modern, "initialize", `{"protocolVersion":"2025-11-25"}`, `{"code":-32601,"message":"method not found: \"initialize\""}`},
		{exchange.Modern, "ping", "", `{"code":-32601,"message":"method not found: \"ping\""}`},
		{exchange.Modern, "prompts/list", "", `{"code":-32601,"message":"method not found: \"prompts/list\""}`},
		{exchange.Modern, "tools/call", `{"name":null}`, `{"code":-32602,"message":"tools/call needs a string \"name\""}`},
		{exchange.Modern, exchange.Listen, "", `{"code":-32602,"message":"subscriptions/listen needs an object \"notifications\""}`},
	} {
		if diff := cmp.Diff(tt.want, ask(t, newServer(t), request(tt.era, tt.method, tt.params, roots.Set{}))); diff != "" {
			t.Errorf("%v %s %s (-want +got):\n%s", tt.era, tt.method, tt.params, diff)
		}
	}
}

func TestModernRequestsSayInWhichWordsTheyAre(t *testing.T) {
	const (
		version, caps = `"io.modelcontextprotocol/protocolVersion"`, `"io.modelcontextprotocol/clientCapabilities"`
		noVersion     = `{"code":-32602,"message":"the request's _meta needs a string \"io.modelcontextprotocol/protocolVersion\""}`
		noCaps        = `{"code":-32602,"message":"the request's _meta needs an object \"io.modelcontextprotocol/clientCapabilities\""}`
	)
	unsupported := func(requested string) string {
		return `{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":` + requested + `}}`
	}
	for _, tt := range []struct{ params, want string }{
		{`{}`, noVersion},
		{`{"_meta":null}`, noVersion},
		{`{"_meta":[]}`, noVersion},
		{`{"_meta":{` + caps + `:{}}}`, noVersion},
		{`{"_meta":{` + version + `:20260728,` + caps + `:{}}}`, noVersion},
		{`{"_meta":{` + version + `:"2026-07-28"}}`, noCaps},
		{`{"_meta":{` + version + `:"2026-07-28",` + caps + `:true}}`, noCaps},
		{`{"_meta":{` + version + `:"2027-01-01",` + caps + `:{}}}`, unsupported(`"2027-01-01"`)},
		{`{"_meta":{` + version + `:"","` + `x":1}}`, unsupported(`""`)},
	} {
		for _, method := range []string{"server/discover", "tools/list", "tools/call", exchange.Listen, "no/such"} {
			r := &exchange.Request{Msg: wire.NewRequest([]byte(`"a"`), method, []byte(tt.params)), Era: exchange.Modern}
			if got := ask(t, newServer(t), r); got != tt.want {
				t.Errorf("%s %s:\n got %s\nwant %s", method, tt.params, got, tt.want)
			}
		}
	}
}

// What tools/list says is held in files, so that a change of it is seen.
func TestToolsList(t *testing.T) {
	for _, era := range eras {
		list := ask(t, newServer(t), request(era, "tools/list", "", roots.Set{}))
		var got bytes.Buffer
		if err := json.Indent(&got, []byte(list), "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := filepath.Join("testdata", "tools-list."+era.String()+".json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// caller is a client that keeps what it is told.
type caller struct {
	mu   sync.Mutex
	told []string
}

func (c *caller) Notify(m *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, string(m.Bytes()))
}
func (c *caller) CanAsk(string) bool { return false }
func (c *caller) Ask(_ context.Context, q []exchange.Question, answer func([]exchange.Answer)) {
	answer(exchange.ErrorAnswers(len(q), wire.CodeInternal, "nobody is asked"))
}

func TestListenIsAcknowledgedAndStaysOpen(t *testing.T) {
	for _, tt := range []struct {
		era    exchange.Era
		params string
		want   []string
	}{
		{exchange.Legacy, "", nil},
		{exchange.Modern, `{"notifications":{"toolsListChanged":true,"resourcesListChanged":true}}`,
			[]string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		c := &caller{}
		r := request(tt.era, exchange.Listen, tt.params, roots.Set{})
		r.Caller = c
		replies := make(chan exchange.Outcome, 2)
		newServer(t).Handle(ctx, r, func(o exchange.Outcome) { replies <- o })
		if diff := cmp.Diff(tt.want, c.told); diff != "" {
			t.Errorf("%v: told (-want +got):\n%s", tt.era, diff)
		}
		if len(replies) != 0 {
			t.Errorf("%v: answered at once: %v", tt.era, <-replies)
		}
		cancel()
		if o := <-replies; o.Msg != nil {
			t.Errorf("%v: answered when it was cancelled: %s", tt.era, o.Msg.Bytes())
		}
	}
}

func TestNotificationsAreIgnored(t *testing.T) {
	for _, era := range eras {
		for _, method := range []string{"notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed", "tools/call", "x"} {
			r := &exchange.Request{Msg: wire.NewNotification(method, []byte(`{"name":"read_text_file","requestId":7}`)), Era: era}
			newServer(t).Handle(t.Context(), r, func(o exchange.Outcome) { t.Errorf("%v %s was answered: %v", era, method, o) })
		}
	}
}

func TestToolsAreNamedOnceAndSayWhatTheyAre(t *testing.T) {
	var names []string
	for _, tool := range tools {
		if slices.Contains(names, tool.name) {
			t.Errorf("two tools are named %s", tool.name)
		}
		names = append(names, tool.name)
		if tool.title == "" || tool.description == "" || !json.Valid([]byte(tool.annotations)) {
			t.Errorf("%s does not say what it is", tool.name)
		}
	}
}

func TestNothingAllowed(t *testing.T) {
	dir := resolve(t, t.TempDir(), 0)
	for _, era := range eras {
		for name, set := range map[string]roots.Set{"no root": {}, "a root that allows nothing": roots.NewSet(dir)} {
			for _, tool := range tools {
				text, isError := use(t, newServer(t), era, set, tool.name, `{"path":"a.txt"}`)
				if !isError || !strings.Contains(text, "none is configured") || !strings.Contains(text, "rootbound fs DIR") {
					t.Errorf("%v, %s: %s says %q", era, name, tool.name, text)
				}
			}
		}
	}
}

func TestLongListsSayWhatIsLeftOut(t *testing.T) {
	entries := []rootfs.Entry{{Name: "a"}, {Name: "b", Type: fs.ModeDir}, {Name: "c", Type: fs.ModeSymlink}, {Name: "d\xff", Type: fs.ModeNamedPipe}}
	const all = "[FILE] a\n[DIR] b\n[FILE] c\n[FILE] <d\xff>"
	c := &call{Server: newServer(t)}
	for most, want := range map[int]string{
		1:            "[FILE] a\n3 more names are not listed, because one answer carries at most 1 bytes of them. To go on, call again with \"cursor\":\"a\".",
		9:            "[FILE] a\n[DIR] b\n2 more names are not listed, because one answer carries at most 9 bytes of them. To go on, call again with \"cursor\":\"b\".",
		len(all) - 9: all,
		1000:         all,
	} {
		if got := string(c.list(entries, most, func(name string) string { return "<" + name + ">" })); got != want {
			t.Errorf("%d bytes:\n got %q\nwant %q", most, got, want)
		}
	}
	if got := c.list(nil, 1, nil); len(got) > 0 {
		t.Errorf("no names: %q", got)
	}
}

func TestACancelledCallSaysNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the client does not want it any more"))
	for _, tool := range tools {
		done := make(chan exchange.Outcome)
		r := request(exchange.Legacy, "tools/call", `{"name":"`+tool.name+`","arguments":{"path":"a"}}`, set)
		newServer(t).Handle(ctx, r, func(o exchange.Outcome) { done <- o })
		if o := <-done; o.Msg != nil {
			t.Errorf("%s answered: %s", tool.name, o.Msg.Bytes())
		}
	}
}

func quoteJSON(s string) string { return string(wire.Quote(s)) }
