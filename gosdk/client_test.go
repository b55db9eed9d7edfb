//lint:file-ignore SA1019 What is deprecated is still spoken, and is what these tests are about.

package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/roots"
)

const (
	discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	said       = `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	// asksRoots is as the specification has it in its example: without params.
	asksRoots = `{"resultType":"input_required","content":[],"requestState":"s","inputRequests":{"r":{"method":"roots/list"}}}`
)

// scripted is a server that answers each method with the next of its results, the last one again and again, and keeps what it
// was sent.
type scripted struct {
	results map[string][]string

	mu  sync.Mutex
	got []*jsonrpc.Request
}

func (s *scripted) answer(m jsonrpc.Message) *jsonrpc.Response {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, r)
	if !r.IsCall() {
		return nil
	}
	list := s.results[r.Method]
	if len(list) == 0 {
		return &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not here"}}
	}
	if len(list) > 1 {
		s.results[r.Method] = list[1:]
	}
	return &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(list[0])}
}

// params are those of the messages with a method, in their order.
func (s *scripted) params(method string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, r := range s.got {
		if r.Method == method {
			list = append(list, string(r.Params))
		}
	}
	return list
}

func (s *scripted) connect(t *testing.T, c connecter, revision string) *mcp.ClientSession {
	t.Helper()
	ct, st := mcp.NewInMemoryTransports()
	conn, err := st.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			m, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			if r := s.answer(m); r != nil {
				if err := conn.Write(context.Background(), r); err != nil {
					return
				}
			}
		}
	}()
	cs, err := c.Connect(t.Context(), ct, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		conn.Close()
		<-done
	})
	return cs
}

// member returns a member of JSON text, compact, by its path; "" when it is not there.
func member(t *testing.T, text string, path ...string) string {
	t.Helper()
	for _, name := range path {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		text = string(members[name])
		if text == "" {
			return ""
		}
	}
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestClientDeclares(t *testing.T) {
	list := roots.NewList(roots.Set{})
	other := &mcp.ClientOptions{
		Capabilities:       &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}, RootsV2: &mcp.RootCapabilities{ListChanged: true}},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil },
	}
	for _, test := range []struct {
		options           *mcp.ClientOptions
		list              *roots.List
		handshake, modern string
	}{
		{nil, list, `{"roots":{"listChanged":true}}`, `{"roots":{}}`},
		{nil, nil, `{}`, `{}`},
		{other, list, `{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{}}}`, `{"roots":{},"sampling":{},"elicitation":{"form":{}}}`},
		{other, nil, `{"sampling":{},"elicitation":{"form":{}}}`, `{"sampling":{},"elicitation":{"form":{}}}`},
	} {
		same := func(got, want string) bool {
			var a, b any
			return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && fmt.Sprint(a) == fmt.Sprint(b)
		}
		s := &scripted{results: map[string][]string{
			"initialize":      {`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`},
			"server/discover": {discovered}, "tools/call": {said},
		}}
		s.connect(t, NewClient(info, test.options, test.list), "2025-11-25")
		if got := member(t, s.params("initialize")[0], "capabilities"); !same(got, test.handshake) {
			t.Errorf("in the handshake it declares %s, want %s", got, test.handshake)
		}
		cs := s.connect(t, NewClient(info, test.options, test.list), "2026-07-28")
		callTool(cs, "x", struct{}{})
		for _, method := range []string{"server/discover", "tools/call"} {
			if got := member(t, s.params(method)[0], "_meta", mcp.MetaKeyClientCapabilities); !same(got, test.modern) {
				t.Errorf("with %s it declares %s, want %s", method, got, test.modern)
			}
		}
	}
}

// A server of 2026-07-28 asks in the specification's own words, brings only a state, and asks for something else; the list
// keeps its order.
func TestClientAnswers(t *testing.T) {
	dirs := workspace(t, "b", "a")
	options := &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"it": r.Params.Message}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "t"}}, nil
		},
	}
	s := &scripted{results: map[string][]string{
		"server/discover": {discovered},
		"tools/call": {
			asksRoots,
			`{"resultType":"input_required","requestState":"only"}`,
			`{"resultType":"input_required","requestState":"more","inputRequests":{
				"e":{"method":"elicitation/create","params":{"message":"hm","requestedSchema":{"type":"object","properties":{"it":{"type":"string"}}}}},
				"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}`,
			said,
		},
	}}
	cs := s.connect(t, NewClient(info, options, roots.NewList(roots.NewSet(dirs...))), "2026-07-28")
	params := &mcp.CallToolParams{Name: "x", Arguments: map[string]any{"n": 1}}
	if res, err := cs.CallTool(t.Context(), params); err != nil || len(res.Content) != 1 {
		t.Fatalf("the call: %v, %v", res, err)
	}
	if params.InputResponses != nil || params.RequestState != "" {
		t.Error("what the caller gave was changed")
	}
	got := s.params("tools/call")
	if len(got) != 4 {
		t.Fatalf("it was called %d times, want 4: %s", len(got), strings.Join(got, "\n"))
	}
	list := fmt.Sprintf(`{"roots":[{"name":"b","uri":%q},{"name":"a","uri":%q}]}`, roots.FileURI(dirs[0].Path), roots.FileURI(dirs[1].Path))
	for i, want := range []struct{ state, path, value string }{
		{"", "", ""},
		{`"s"`, "r", list},
		{`"only"`, "", ""},
		{`"more"`, "e", `{"action":"accept","content":{"it":"hm"}}`},
	} {
		if state := member(t, got[i], "requestState"); state != want.state {
			t.Errorf("try %d brings the state %s, want %s", i, state, want.state)
		}
		if value := member(t, got[i], "inputResponses", want.path); want.path != "" && value != want.value {
			t.Errorf("try %d answers %s, want %s", i, value, want.value)
		}
		if n := member(t, got[i], "arguments", "n"); n != "1" {
			t.Errorf("try %d has the argument %s", i, n)
		}
	}
	if member(t, got[3], "inputResponses", "s") == "" {
		t.Error("the model was not asked")
	}
}

func TestClientAnswersWhatItCan(t *testing.T) {
	for name, test := range map[string]struct{ result, want string }{
		"asked for ever":     {asksRoots, "the server has asked 10 times"},
		"put off for ever":   {`{"resultType":"input_required","inputRequests":{}}`, "the server is busy: it has put the request off 3 times"},
		"nobody to ask":      {`{"resultType":"input_required","inputRequests":{"e":{"method":"elicitation/create","params":{"message":"hm"}}}}`, "client does not support elicitation"},
		"what nobody knows":  {`{"resultType":"input_required","inputRequests":{"e":{"method":"made/up"}}}`, `unsupported InputRequest method: "made/up"`},
		"no question at all": {`{"resultType":"input_required","inputRequests":{"e":7}}`, "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{results: map[string][]string{"server/discover": {discovered}, "tools/call": {test.result}}}
			cs := s.connect(t, NewClient(info, nil, roots.NewList(roots.Set{})), "2026-07-28")
			if got := callTool(cs, "x", struct{}{}); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want an error with %q", got, test.want)
			}
		})
	}
	t.Run("no roots", func(t *testing.T) {
		s := &scripted{results: map[string][]string{"server/discover": {discovered}, "tools/call": {asksRoots}}}
		cs := s.connect(t, NewClient(info, nil, nil), "2026-07-28")
		if got := callTool(cs, "x", struct{}{}); !strings.Contains(got, "this client has no roots") {
			t.Errorf("got %q", got)
		}
	})
}

// What the SDK cannot read is put right over HTTP too, in both forms of a response, and nothing else is touched.
func TestClientAnswersOverHTTP(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream; charset=utf-8"} {
		s := &scripted{results: map[string][]string{
			"server/discover": {discovered},
			"tools/call":      {asksRoots, `{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}]}`},
		}}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			m, err := jsonrpc.DecodeMessage(text)
			if err != nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			res := s.answer(m)
			if res == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			text, err = jsonrpc.EncodeMessage(res)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", kind)
			if kind == "application/json" {
				w.Write(text)
			} else {
				fmt.Fprintf(w, ": a remark with \"inputRequests\"\n\nevent: message\ndata: %s\n\n", text)
			}
		}))
		cs, err := NewClient(info, nil, roots.NewList(roots.Set{})).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := callTool(cs, "x", struct{}{}); len(got) != 1<<20 || strings.Trim(got, "x") != "" {
			t.Errorf("%s: got %d bytes: %.100q", kind, len(got), got)
		}
		if got := s.params("tools/call"); len(got) != 2 || member(t, got[1], "inputResponses", "r") != `{"roots":[]}` {
			t.Errorf("%s: it was sent %q", kind, got)
		}
		cs.Close()
		server.Close()
	}
}

// A transport of another's around the SDK's own keeps what that one says over HTTP.
func TestClientOverHTTPInAnotherTransport(t *testing.T) {
	s := mcp.NewServer(info, nil)
	var mu sync.Mutex
	var revisions []string
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		revisions = append(revisions, r.Header.Get("Mcp-Protocol-Version"))
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	around := struct{ mcp.Transport }{&mcp.StreamableClientTransport{Endpoint: server.URL, DisableStandaloneSSE: true}}
	cs, err := NewClient(info, nil, nil).Connect(t.Context(), around, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if err := cs.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := revisions[len(revisions)-1]; got != "2025-11-25" {
		t.Errorf("the last request is of the revision %q", got)
	}
}

func TestClientTellsOfChanges(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a", "b")
		var mu sync.Mutex
		told := 0
		s := mcp.NewServer(info, &mcp.ServerOptions{RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) {
			mu.Lock()
			defer mu.Unlock()
			told++
		}})
		list := roots.NewList(roots.NewSet(dirs...))
		client := NewClient(info, nil, list)
		expect := func(what string, want int) {
			t.Helper()
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if revision >= firstStateless {
				want = 0 // it has no word for it
			}
			if told != want {
				t.Errorf("%s: told %d times, want %d", what, told, want)
			}
			told = 0
		}
		cs := connect(t, s, client, revision)
		other := connect(t, s, client, revision)
		expect("nothing", 0)
		list.Set(dirs[1])
		expect("another list", 2)
		list.Set(dirs[1])
		expect("the same list", 0)
		list.Consent(roots.NewSet(dirs[0]))
		expect("taken back", 2)
		client.AddRoots(&mcp.Root{URI: "file:///x"})
		expect("not the list", 0)
		other.Close()
		synctest.Wait()
		list.Set(dirs...)
		expect("one of them is gone", 1)
		cs.Close()
		list.Set()
		expect("both", 0)
	})
}

func TestClientKeepsItsOwnLoop(t *testing.T) {
	s := &scripted{results: map[string][]string{"server/discover": {discovered}, "tools/call": {asksRoots}}}
	cs := s.connect(t, NewClient(info, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}}, roots.NewList(roots.Set{})), "2026-07-28")
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
	if err != nil || !res.NeedsInput() || len(res.InputRequests) != 1 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func FuzzWithParams(f *testing.F) {
	for _, seed := range []string{
		discovered, said, asksRoots, `{"inputRequests":{"a":{"method":"m","params":null},"b":{"method":"m","params":{"x":1}}}}`,
		`{"inputRequests":null}`, `{"inputRequests":{"a":null}}`, `{"inputRequests":{"a":[]}}`, `"inputRequests"`, `{"x":"\"inputRequests\""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := withParams(slices.Clone(text))
		if bytes.Equal(got, text) {
			return
		}
		var before, after struct {
			InputRequests map[string]map[string]json.RawMessage
		}
		if err := errors.Join(json.Unmarshal(text, &before), json.Unmarshal(got, &after)); err != nil {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		if !bytes.Equal(withParams(got), got) {
			t.Errorf("%q became %q, and then another", text, got)
		}
		for key, ask := range after.InputRequests {
			if p := string(ask["params"]); p == "" || p == "null" || p != "{}" && p != string(before.InputRequests[key]["params"]) {
				t.Errorf("%q became %q: the question %q has the params %s", text, got, key, p)
			}
		}
	})
}
