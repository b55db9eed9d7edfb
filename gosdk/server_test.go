//lint:file-ignore SA1019 What is deprecated is still spoken, and is what these tests are about.

package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// revisions are one of each era.
var revisions = []string{"2025-11-25", "2026-07-28"}

func eachEra(t *testing.T, f func(t *testing.T, revision string)) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, revision) })
		})
	}
}

// workspace makes directories, each with a file that has its name in it, and returns them resolved.
func workspace(t *testing.T, names ...string) []roots.Dir {
	t.Helper()
	top := t.TempDir()
	var dirs []roots.Dir
	for _, name := range names {
		path := filepath.Join(top, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "file"), []byte("in "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := roots.Resolve(path, roots.ResolveOptions{Access: roots.ReadWrite, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	return dirs
}

var info = &mcp.Implementation{Name: "test", Version: "1.0.0"}

type readInput struct {
	Path string `json:"path"`
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// read reads a file as the example does.
func read(ctx context.Context, path string) (string, error) {
	state, err := Roots(ctx)
	if err != nil {
		return "", fmt.Errorf("reading: %w", err)
	}
	fsys, err := rootfs.Open(state.Set, rootfs.Options{})
	if err != nil {
		return "", err
	}
	defer fsys.Close()
	f, err := fsys.Open(path)
	if err != nil {
		return "", Denied(ctx, path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// newReader makes a server with a tool, a resource template and a prompt that read a file.
func newReader(o roots.SessionOptions) *mcp.Server {
	s := NewServer(info, nil, o)
	mcp.AddTool(s, &mcp.Tool{Name: "read"}, func(ctx context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, any, error) {
		text, err := read(ctx, in.Path)
		return say(text), nil, err
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "files", URITemplate: "file:///{+path}"}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		path, err := roots.ParseURI(r.Params.URI)
		if err != nil {
			return nil, err
		}
		text, err := read(ctx, path)
		if err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: text}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "read", Arguments: []*mcp.PromptArgument{{Name: "path"}}}, func(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		text, err := read(ctx, r.Params.Arguments["path"])
		if err != nil {
			return nil, err
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
	})
	return s
}

type connecter interface {
	Connect(context.Context, mcp.Transport, *mcp.ClientSessionOptions) (*mcp.ClientSession, error)
}

// connect joins a client and a server, in the revision that the client begins with, until the test ends.
func connect(t *testing.T, s *mcp.Server, c connecter, revision string) *mcp.ClientSession {
	t.Helper()
	ct, st := mcp.NewInMemoryTransports()
	ss, err := s.Connect(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := c.Connect(t.Context(), ct, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	if got := cs.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("they speak %s, want %s", got, revision)
	}
	t.Cleanup(func() {
		cs.Close()
		ss.Wait()
	})
	return cs
}

// callRead calls the tool read, and returns its text or its error.
func callRead(cs *mcp.ClientSession, path string) string {
	return callTool(cs, "read", readInput{path})
}

func callTool(cs *mcp.ClientSession, name string, in any) string {
	res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: in})
	switch {
	case err != nil:
		return "error: " + err.Error()
	case res.InputRequests != nil:
		return "not answered"
	case len(res.Content) != 1:
		return fmt.Sprintf("%d contents", len(res.Content))
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// expect checks what the tool read says of files: "in NAME", or only that they are outside.
func expect(t *testing.T, cs *mcp.ClientSession, want map[string]string) {
	t.Helper()
	for path, want := range want {
		got := callRead(cs, path)
		if strings.Contains(got, rootfs.OutsideRoots.Error()) {
			got = "outside"
		}
		if got != want {
			t.Errorf("reading %q: %q, want %q", path, got, want)
		}
	}
}

func in(d roots.Dir) string { return filepath.Join(d.Path, "file") }

// told is a client with its list.
type told struct {
	*Client
	*roots.List
}

func newTold(o *mcp.ClientOptions, dirs ...roots.Dir) *told {
	c := &told{List: roots.NewList(roots.NewSet(dirs...))}
	c.Client = NewClient(info, o, c.List)
	return c
}

func TestServer(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a", "b", "c")
		a, b, c := dirs[0], dirs[1], dirs[2]
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(a, b)})
		client := newTold(nil, b, c)
		cs := connect(t, s, client.Client, revision)
		expect(t, cs, map[string]string{"file": "in b", in(b): "in b", in(a): "outside", in(c): "outside", "/etc/passwd": "outside"})

		for _, d := range []roots.Dir{b, a} {
			res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: roots.FileURI(in(d))})
			if d.Name == "b" && (err != nil || res.Contents[0].Text != "in b") || d.Name == "a" && err == nil {
				t.Errorf("reading the resource in %s: %v, %v", d.Name, res, err)
			}
			prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "read", Arguments: map[string]string{"path": in(d)}})
			if d.Name == "b" && (err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "in b") || d.Name == "a" && err == nil {
				t.Errorf("getting the prompt in %s: %v, %v", d.Name, prompt, err)
			}
		}

		// In the era with a word for it the server is told of a change; else a path that is denied makes it ask.
		client.Consent(roots.NewSet(dirs...))
		client.Set(a)
		time.Sleep(time.Second)
		expect(t, cs, map[string]string{in(a): "in a"})
		expect(t, cs, map[string]string{in(b): "outside"})
		client.Set()
		time.Sleep(time.Minute)
		expect(t, cs, map[string]string{in(a): "outside"})
	})
}

func TestServerWithoutList(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a", "b")
		configured := roots.NewSet(dirs[0])
		for name, test := range map[string]struct {
			o      roots.SessionOptions
			client connecter
			want   map[string]string
		}{
			"it declares no roots":     {roots.SessionOptions{Configured: configured}, NewClient(info, nil, nil), map[string]string{in(dirs[0]): "in a", in(dirs[1]): "outside"}},
			"its first list is empty":  {roots.SessionOptions{Configured: configured}, newTold(nil).Client, map[string]string{in(dirs[0]): "in a", in(dirs[1]): "outside"}},
			"it is ignored":            {roots.SessionOptions{Configured: configured, Mode: roots.Ignore}, newTold(nil, dirs[1]).Client, map[string]string{in(dirs[0]): "in a", in(dirs[1]): "outside"}},
			"nothing is configured":    {roots.SessionOptions{}, newTold(nil, dirs[1]).Client, map[string]string{in(dirs[1]): "outside"}},
			"its list is the boundary": {roots.SessionOptions{Mode: roots.Accept, Consented: roots.NewSet(dirs[1])}, newTold(nil, dirs...).Client, map[string]string{in(dirs[0]): "outside", in(dirs[1]): "in b"}},
			"and nobody consented":     {roots.SessionOptions{Mode: roots.Accept}, newTold(nil, dirs...).Client, map[string]string{in(dirs[1]): "outside"}},
			"the SDK's own client":     {roots.SessionOptions{Configured: configured}, mcp.NewClient(info, nil), map[string]string{in(dirs[0]): "in a"}},
		} {
			s := newReader(test.o)
			cs := connect(t, s, test.client, revision)
			t.Log(name)
			expect(t, cs, test.want)
		}
	})
}

// hostile is a client that answers roots/list as a test says.
type hostile struct {
	list   func(ctx context.Context) (*mcp.ListRootsResult, error)
	asked  atomic.Int32
	client *Client
}

func newHostile(list func(ctx context.Context) (*mcp.ListRootsResult, error)) *hostile {
	h := &hostile{list: list, client: NewClient(info, nil, roots.NewList(roots.Set{}))}
	instead := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "roots/list" {
				return next(ctx, method, req)
			}
			h.asked.Add(1)
			return h.list(ctx)
		}
	}
	h.client.AddReceivingMiddleware(instead)
	h.client.receive = instead(h.client.receive) // for what is asked in mid-request
	return h
}

func (h *hostile) Connect(ctx context.Context, t mcp.Transport, o *mcp.ClientSessionOptions) (*mcp.ClientSession, error) {
	return h.client.Connect(ctx, t, o)
}

func (h *hostile) changed(t *testing.T, cs *mcp.ClientSession) {
	t.Helper()
	_, err := h.client.send(t.Context(), "notifications/roots/list_changed", &mcp.ClientRequest[*mcp.RootsListChangedParams]{Session: cs, Params: &mcp.RootsListChangedParams{}})
	if err != nil {
		t.Fatal(err)
	}
}

func listOfDirs(dirs ...roots.Dir) *mcp.ListRootsResult {
	res := &mcp.ListRootsResult{Roots: []*mcp.Root{}}
	for _, d := range dirs {
		res.Roots = append(res.Roots, &mcp.Root{URI: roots.FileURI(d.Path), Name: d.Name})
	}
	return res
}

func TestServerClientNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a")
		var warned []string
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...), Warn: func(text string) { warned = append(warned, text) }})
		h := newHostile(func(ctx context.Context) (*mcp.ListRootsResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		cs := connect(t, s, h, "2025-11-25")
		begun := time.Now()
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		if waited := time.Since(begun); waited != roots.AnswerLimit || len(warned) != 1 {
			t.Errorf("the call waited for %v, want %v; warned: %q", waited, roots.AnswerLimit, warned)
		}
		expect(t, cs, map[string]string{in(dirs[0]): "in a", "/etc/passwd": "outside"})
		if waited := time.Since(begun); waited != roots.AnswerLimit || h.asked.Load() != 1 || len(warned) != 1 {
			t.Errorf("after %v, asked %d times, warned: %q", waited, h.asked.Load(), warned)
		}
	})
}

// A client of the stateless era that never tries again keeps others waiting for a moment, once, and widens nothing.
func TestServerClientNeverComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs[0])})
		client := NewClient(info, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}}, roots.NewList(roots.NewSet(dirs[0])))
		cs := connect(t, s, client, "2026-07-28")
		if got := callRead(cs, in(dirs[0])); got != "not answered" {
			t.Errorf("the first call: %q", got)
		}
		begun := time.Now()
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		expect(t, cs, map[string]string{in(dirs[1]): "outside"})
		if waited := time.Since(begun); waited != roots.AnswerLimit {
			t.Errorf("they waited for %v, want %v", waited, roots.AnswerLimit)
		}
	})
}

func TestServerLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		h := newHostile(func(ctx context.Context) (*mcp.ListRootsResult, error) {
			time.Sleep(2 * roots.AnswerLimit)
			return listOfDirs(dirs[1]), nil
		})
		cs := connect(t, s, h, "2025-11-25")
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		time.Sleep(2 * roots.AnswerLimit)
		expect(t, cs, map[string]string{in(dirs[1]): "in b"})
		if h.asked.Load() != 1 {
			t.Errorf("asked %d times, want once", h.asked.Load())
		}
		expect(t, cs, map[string]string{in(dirs[0]): "outside"})
	})
}

func TestServerBrokenLists(t *testing.T) {
	dirs := workspace(t, "a", "b")
	uri := roots.FileURI(dirs[0].Path)
	for name, test := range map[string]struct {
		answer string // the result of roots/list
		err    error
		want   string // of the file in a, where a and b are configured
	}{
		"no list":             {answer: `{}`, want: "in a"},
		"null":                {answer: `{"roots":null}`, want: "in a"},
		"only a null":         {answer: `{"roots":[null]}`, want: "outside"},
		"a null in it":        {answer: `{"roots":[null,{"uri":"` + uri + `"}]}`, want: "in a"},
		"an error":            {err: &jsonrpc.Error{Code: -32603, Message: "no"}, want: "in a"},
		"no such method":      {err: &jsonrpc.Error{Code: -32601, Message: "no"}, want: "in a"},
		"nothing that is one": {answer: `{"roots":[{"uri":"vscode-remote://x/y"},{"uri":"` + uri[:len(uri)-1] + `%zz"},{"uri":"/plain/path"}]}`, want: "outside"},
		"one of them":         {answer: `{"roots":[{"uri":"file:///nowhere/at/all"},{"uri":"` + uri + `"}]}`, want: "in a"},
		"a way up":            {answer: `{"roots":[{"uri":"` + uri + `/../b"}]}`, want: "outside"},
		"the whole disk":      {answer: `{"roots":[{"uri":"file:///"}]}`, want: "outside"},
		"another":             {answer: `{"roots":[{"uri":"` + roots.FileURI(dirs[1].Path) + `"}]}`, want: "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, revision string) {
				if test.err != nil && revision >= firstStateless {
					return // it has no answer that is an error
				}
				s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
				h := newHostile(func(ctx context.Context) (*mcp.ListRootsResult, error) {
					var res mcp.ListRootsResult
					if test.err == nil {
						if err := json.Unmarshal([]byte(test.answer), &res); err != nil {
							t.Error(err)
						}
					}
					return &res, test.err
				})
				cs := connect(t, s, h, revision)
				expect(t, cs, map[string]string{in(dirs[0]): test.want})
			})
		})
	}
}

// A list that came before is not taken away by an answer that has none.
func TestServerBrokenListAfterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		answer := listOfDirs(dirs[0])
		h := newHostile(func(context.Context) (*mcp.ListRootsResult, error) { return answer, nil })
		cs := connect(t, s, h, "2025-11-25")
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		for _, test := range []struct {
			answer *mcp.ListRootsResult
			want   string
		}{
			{&mcp.ListRootsResult{}, "in a"}, // {"roots":null}
			{&mcp.ListRootsResult{Roots: []*mcp.Root{}}, "outside"},
		} {
			answer = test.answer
			time.Sleep(time.Minute)
			h.changed(t, cs)
			synctest.Wait()
			expect(t, cs, map[string]string{in(dirs[0]): test.want, in(dirs[1]): "outside"})
		}
	})
}

// A client that has opened another directory and does not tell is asked again for a path in it, once for each call.
func TestServerClientDoesNotTell(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		now := dirs[0]
		h := newHostile(func(context.Context) (*mcp.ListRootsResult, error) { return listOfDirs(now), nil })
		cs := connect(t, s, h, revision)
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		now = dirs[1]
		for i, want := range []map[string]string{{in(dirs[1]): "in b"}, {in(dirs[0]): "outside"}, {"/etc/passwd": "outside"}} {
			time.Sleep(time.Second)
			expect(t, cs, want)
			if got, want := h.asked.Load(), []int32{2, 3, 3}[i]; got != want {
				t.Errorf("%v: asked %d times, want %d", i, got, want)
			}
		}
	})
}

// A handler is not run again and again because other roots hold each time.
func TestServerOtherRootsEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		client := newTold(nil, dirs...)
		client.Set(dirs[0])
		var cs *mcp.ClientSession
		runs := 0
		mcp.AddTool(s, &mcp.Tool{Name: "flip"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			if _, err := Roots(ctx); err != nil {
				return nil, nil, err
			}
			runs++
			client.Set(dirs[runs%2])
			time.Sleep(2 * time.Second)
			callRead(cs, in(dirs[runs%2])) // brings the new list
			return nil, nil, Denied(ctx, dirs[0].Path, &rootfs.Error{Op: "opening", Path: "x", Code: rootfs.OutsideRoots})
		})
		cs = connect(t, s, client.Client, "2025-11-25")
		if got := callTool(cs, "flip", struct{}{}); !strings.Contains(got, rootfs.OutsideRoots.Error()) || runs != 2 {
			t.Errorf("it ran %d times, and said %q", runs, got)
		}
	})
}

// Since 2026-07-28 nobody tells of changes, whatever a client declares, so a list has its time.
func TestServerListHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		client := mcp.NewClient(info, nil) // it declares what does not exist
		root := func(d roots.Dir) *mcp.Root { return &mcp.Root{URI: roots.FileURI(d.Path)} }
		client.AddRoots(root(dirs[0]))
		cs := connect(t, s, client, "2026-07-28")
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		client.RemoveRoots(root(dirs[0]).URI)
		client.AddRoots(root(dirs[1]))
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		time.Sleep(time.Minute)
		expect(t, cs, map[string]string{in(dirs[0]): "outside"})
	})
}

// What is kept for a connection ends with it.
func TestServerForgetsSessions(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a")
		h := &holder{options: roots.SessionOptions{Configured: roots.NewSet(dirs...)}, sessions: map[*mcp.ServerSession]*roots.Session{}}
		s := mcp.NewServer(info, nil)
		s.AddReceivingMiddleware(h.receive)
		mcp.AddTool(s, &mcp.Tool{Name: "read"}, func(ctx context.Context, r *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, any, error) {
			text, err := read(ctx, in.Path)
			return say(fmt.Sprint(text, len(r.Params.InputResponses))), nil, err
		})
		cs := connect(t, s, newTold(nil, dirs...).Client, revision)
		expect(t, cs, map[string]string{in(dirs[0]): "in a0"}) // our own question is not the handler's
		if len(h.sessions) != 1 {
			t.Errorf("%d sessions are kept, want 1", len(h.sessions))
		}
		cs.Close()
		synctest.Wait()
		if len(h.sessions) != 0 {
			t.Errorf("%d sessions are kept when none is left", len(h.sessions))
		}
	})
}

// A client that does not know the method is not asked again; one that failed is, in its time.
func TestServerClientFails(t *testing.T) {
	for code, want := range map[int64]int32{-32601: 1, -32603: 3} {
		synctest.Test(t, func(t *testing.T) {
			dirs := workspace(t, "a")
			s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
			h := newHostile(func(context.Context) (*mcp.ListRootsResult, error) {
				return nil, &jsonrpc.Error{Code: code, Message: "no"}
			})
			cs := connect(t, s, h, "2025-11-25")
			for range 3 {
				expect(t, cs, map[string]string{in(dirs[0]): "in a"})
				time.Sleep(time.Minute)
			}
			if got := h.asked.Load(); got != want {
				t.Errorf("with %d asked %d times, want %d", code, got, want)
			}
		})
	}
}

// Over stateless HTTP each request knows nothing of the others, and still a person is not told the same each time.
func TestServerStatelessHTTP(t *testing.T) {
	dirs := workspace(t, "a", "b")
	var warned []string
	s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...), Warn: func(text string) { warned = append(warned, text) }})
	listener := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer listener.Close()
	h := newHostile(func(context.Context) (*mcp.ListRootsResult, error) {
		return &mcp.ListRootsResult{Roots: []*mcp.Root{{URI: "http://x/y"}, {URI: roots.FileURI(dirs[1].Path)}}}, nil
	})
	cs, err := h.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: listener.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	for range 3 {
		expect(t, cs, map[string]string{in(dirs[0]): "outside", in(dirs[1]): "in b"})
	}
	if len(warned) != 1 || h.asked.Load() != 6 {
		t.Errorf("warned %q, asked %d times", warned, h.asked.Load())
	}
}

// Over HTTP with sessions the question comes on the stream of the call.
func TestServerHTTPWithSessions(t *testing.T) {
	dirs := workspace(t, "a", "b")
	s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
	listener := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	defer listener.Close()
	for _, d := range dirs {
		client := newTold(nil, d)
		cs, err := client.Client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: listener.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		other := dirs[0]
		if d.Name == "a" {
			other = dirs[1]
		}
		expect(t, cs, map[string]string{in(d): "in " + d.Name, in(other): "outside"})
	}
}

func TestMissing(t *testing.T) {
	form, url := &mcp.ElicitParams{Message: "x"}, &mcp.ElicitParams{Message: "x", Mode: "url", URL: "https://example.com/"}
	both := &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	for _, test := range []struct {
		caps mcp.ClientCapabilities
		ask  mcp.InputRequest
		want string // requiredCapabilities
	}{
		{mcp.ClientCapabilities{}, &mcp.ListRootsParams{}, `{"roots":{}}`},
		{mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}}, &mcp.ListRootsParams{}, `null`},
		{mcp.ClientCapabilities{}, form, `{"elicitation":{"form":{}}}`},
		{mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}, form, `null`},
		{mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}, url, `{"elicitation":{"url":{}}}`},
		{mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: both.URL}}, form, `{"elicitation":{"form":{}}}`},
		{mcp.ClientCapabilities{Elicitation: both}, form, `null`},
		{mcp.ClientCapabilities{Elicitation: both}, url, `null`},
		{mcp.ClientCapabilities{}, &mcp.CreateMessageParams{}, `{"sampling":{}}`},
		{mcp.ClientCapabilities{}, &mcp.CreateMessageWithToolsParams{}, `{"sampling":{}}`},
		{mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}, &mcp.CreateMessageWithToolsParams{}, `null`},
		{mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}, &mcp.CreateMessageWithToolsParams{Tools: []*mcp.Tool{{}}}, `{"sampling":{"tools":{}}}`},
	} {
		got, err := json.Marshal(missing(&test.caps, mcp.InputRequestMap{"x": test.ask}))
		if err != nil || string(got) != test.want {
			t.Errorf("%+v asked %T: missing %s, want %s", test.caps, test.ask, got, test.want)
		}
	}
}

func TestServerStormOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		now := dirs[0]
		var cs *mcp.ClientSession
		var h *hostile
		h = newHostile(func(ctx context.Context) (*mcp.ListRootsResult, error) {
			h.changed(t, cs) // and it goes on in mid-question
			return listOfDirs(now), nil
		})
		cs = connect(t, s, h, "2025-11-25")
		for range 5000 {
			h.changed(t, cs)
		}
		synctest.Wait()
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		if got := h.asked.Load(); got != 1 {
			t.Errorf("asked %d times, want once", got)
		}
		now = dirs[1]
		expect(t, cs, map[string]string{in(dirs[1]): "in b"})
		if got := h.asked.Load(); got != 2 {
			t.Errorf("asked %d times, want twice", got)
		}
	})
}

func TestServerConcurrentRequests(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		cs := connect(t, s, newTold(nil, dirs[1]).Client, revision)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { expect(t, cs, map[string]string{in(dirs[0]): "outside", in(dirs[1]): "in b"}) })
		}
		wg.Wait()
	})
}

// A call ends with the roots with which it began; the next one has those that hold then.
func TestServerWithdrawnInMidCall(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		began, goOn := make(chan bool), make(chan bool)
		mcp.AddTool(s, &mcp.Tool{Name: "slow"}, func(ctx context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, any, error) {
			first, err := Roots(ctx)
			if err != nil {
				return nil, nil, err
			}
			began <- true
			<-goOn
			second, err := Roots(ctx)
			if !first.Set.Equal(second.Set) {
				t.Error("other roots hold in the same call")
			}
			return say(fmt.Sprint(second.Set.Len(), " ", second.Set.Dirs()[0].Name)), nil, err
		})
		client := newTold(nil, dirs...)
		client.Set(dirs[0])
		cs := connect(t, s, client.Client, revision)
		got := make(chan string)
		go func() { got <- callTool(cs, "slow", readInput{}) }()
		<-began
		client.Set(dirs[1])
		synctest.Wait()
		goOn <- true
		if got := <-got; got != "1 a" {
			t.Errorf("the call in which they were withdrawn: %q", got)
		}
		time.Sleep(time.Minute)
		expect(t, cs, map[string]string{in(dirs[0]): "outside", in(dirs[1]): "in b"})
	})
}

func TestServerVanishedDirectory(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a", "b")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		cs := connect(t, s, newTold(nil, dirs...).Client, revision)
		expect(t, cs, map[string]string{in(dirs[0]): "in a", in(dirs[1]): "in b"})
		if err := os.RemoveAll(dirs[0].Path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		expect(t, cs, map[string]string{in(dirs[0]): "outside", in(dirs[1]): "in b"})
	})
}

// Handlers that ask for themselves, before and after they need roots, are asked for in both eras, as often as they like.
func TestServerHandlerAsksForItself(t *testing.T) {
	dirs := workspace(t, "a", "b")
	ask := func(key, state string) *mcp.CallToolResult {
		asks := mcp.InputRequestMap{key: &mcp.ElicitParams{
			Message: key, RequestedSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"say": {Type: "string"}}},
		}}
		t.Cleanup(func() {
			if len(asks) != 1 {
				t.Error("what the handler has made was changed")
			}
		})
		return &mcp.CallToolResult{RequestState: state, InputRequests: asks}
	}
	newAsker := func() *mcp.Server {
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			state, err := Roots(ctx)
			if err != nil {
				return nil, nil, err
			}
			said := r.Params.RequestState
			for _, key := range []string{"one", "two", "three"} {
				if got, ok := r.Params.InputResponses[key].(*mcp.ElicitResult); ok {
					said += fmt.Sprint(" ", got.Content["say"])
				}
			}
			for i, key := range []string{"one", "two", "three"} {
				if strings.Count(said, " ") == i {
					return ask(key, said), nil, nil
				}
			}
			return say(fmt.Sprint(state.Set.Dirs()[0].Name, state.Set.Len(), said)), nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "endless"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return ask("again", "x"), nil, nil
		})
		return s
	}
	asked := 0
	var takes time.Duration // the person
	answering := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		time.Sleep(takes)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"say": r.Params.Message}}, nil
	}}
	check := func(t *testing.T, cs *mcp.ClientSession) {
		t.Helper()
		asked = 0
		if got := callTool(cs, "ask", struct{}{}); got != "b1 one two three" || asked != 3 {
			t.Errorf("got %q after %d questions", got, asked)
		}
		if got := callTool(cs, "endless", struct{}{}); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, "10 times") {
			t.Errorf("a handler that never stops asking: %q", got)
		}
	}
	eachEra(t, func(t *testing.T, revision string) {
		takes = time.Minute // longer than a list is good for
		cs := connect(t, newAsker(), newTold(answering, dirs[1]).Client, revision)
		check(t, cs)
		takes = 0
		// What the client does not declare it is not asked.
		got := callTool(connect(t, newAsker(), newTold(nil, dirs[1]).Client, revision), "ask", struct{}{})
		if want := map[bool]string{true: "does not declare", false: "does not support"}[revision >= firstStateless]; !strings.Contains(got, want) {
			t.Errorf("a client that cannot be asked: %q, want ... %s ...", got, want)
		}
	})

	// Over stateless HTTP each try may come to another process.
	t.Run("HTTP", func(t *testing.T) {
		servers := []http.Handler{}
		for range 3 {
			s := newAsker()
			servers = append(servers, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
		}
		var n atomic.Int32
		listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			servers[int(n.Add(1))%len(servers)].ServeHTTP(w, r)
		}))
		defer listener.Close()
		cs, err := newTold(answering, dirs[1]).Client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: listener.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		check(t, cs)
		expect(t, cs, map[string]string{in(dirs[0]): "outside", in(dirs[1]): "in b"})
	})
}

func TestServerHandlersThatDoAsTheyLike(t *testing.T) {
	eachEra(t, func(t *testing.T, revision string) {
		dirs := workspace(t, "a")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		var kept error
		mcp.AddTool(s, &mcp.Tool{Name: "swallow"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			_, err := Roots(ctx)
			_, again := Roots(ctx)
			kept = err
			return say(fmt.Sprint(errors.Is(err, errAsk), errors.Is(again, errAsk))), nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "old"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, kept
		})
		mcp.AddTool(s, &mcp.Tool{Name: "elsewhere"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			_, err := Roots(context.Background())
			return nil, nil, Denied(context.Background(), "/", err)
		})
		mcp.AddTool(s, &mcp.Tool{Name: "first"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, Denied(ctx, "/", &rootfs.Error{Op: "opening", Path: "/", Code: rootfs.OutsideRoots})
		})
		cs := connect(t, s, newTold(nil, dirs...).Client, revision)
		for tool, want := range map[string]string{
			"elsewhere": "finding the roots of a request: this is no context of a server that gosdk.NewServer made",
			"first":     `opening "/": outside the roots, or through a link that ends outside them or nowhere`,
		} {
			if got := callTool(cs, tool, struct{}{}); got != want {
				t.Errorf("%s: %q, want %q", tool, got, want)
			}
		}
		if got := callTool(cs, "swallow", struct{}{}); got != "true true" {
			t.Errorf("swallow: %q", got)
		}
		if got := callTool(cs, "old", struct{}{}); got != errAsk.Error() {
			t.Errorf("old: %q", got)
		}
		// The question that was not waited for was withdrawn, so the next call has it.
		begun := time.Now()
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the next call waited for %v", waited)
		}
	})
}

// A call that is given up while its client is asked withdraws the question.
func TestServerCallGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a")
		s := newReader(roots.SessionOptions{Configured: roots.NewSet(dirs...)})
		answers := make(chan *mcp.ListRootsResult)
		h := newHostile(func(ctx context.Context) (*mcp.ListRootsResult, error) {
			select {
			case res := <-answers:
				return res, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		cs := connect(t, s, h, "2025-11-25")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "read", Arguments: readInput{in(dirs[0])}})
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call: %v", err)
		}
		synctest.Wait()
		go func() { answers <- listOfDirs(dirs...) }()
		begun := time.Now()
		expect(t, cs, map[string]string{in(dirs[0]): "in a"})
		if waited := time.Since(begun); waited != 0 || h.asked.Load() != 2 {
			t.Errorf("the next call waited for %v, and the client was asked %d times", waited, h.asked.Load())
		}
	})
}
