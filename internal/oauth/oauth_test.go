package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is an MCP server and its authorization server.
type world struct {
	t        *testing.T
	mcp, as  *httptest.Server
	mu       sync.Mutex
	metadata map[string]any // of the authorization server
	resource map[string]any
	header   string // of the refusal; META is where the resource's document is
	access   int    // tokens that were given
	refresh  int    // how often one was refreshed
	valid    string // the token that the server takes
	code     string
	asked    url.Values // at the authorization endpoint
	kind     string     // of tokens
	dead     bool       // refresh tokens are not taken
	got      []url.Values
	methods  []string            // as which clients were registered
	renewing func() (status int) // called before a token is renewed; 0 goes on
	revoked  []*http.Request
	doubt    string                                     // that was told with the page
	answer   func(redirect string, q url.Values) string // what the browser comes back with; nil is as it should be
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	mux := http.NewServeMux()
	as := http.NewServeMux()
	w.mcp, w.as = httptest.NewServer(mux), httptest.NewServer(as)
	t.Cleanup(w.mcp.Close)
	t.Cleanup(w.as.Close)
	w.metadata = map[string]any{
		"issuer": w.as.URL + "/tenant", "authorization_endpoint": w.as.URL + "/authorize", "token_endpoint": w.as.URL + "/token", "registration_endpoint": w.as.URL + "/register",
		"code_challenge_methods_supported": []string{"plain", "S256"}, "token_endpoint_auth_methods_supported": []string{"none"}, "scopes_supported": []string{"offline_access"},
		"authorization_response_iss_parameter_supported": true,
	}
	w.resource = map[string]any{"resource": w.mcp.URL + "/mcp", "authorization_servers": []string{w.as.URL + "/tenant"}, "scopes_supported": []string{"all"}}
	w.header = `Basic realm="x", error="none"|Bearer error="invalid_token", resource_metadata="META", scope="files:read files:write"`
	document := func(m *map[string]any) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			w.mu.Lock()
			defer w.mu.Unlock()
			rw.Header().Set("Content-Type", "application/json")
			json.NewEncoder(rw).Encode(*m)
		}
	}
	mux.HandleFunc("/mcp", func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Header.Get("Authorization") == "Bearer "+w.valid && w.valid != "" {
			return
		}
		for v := range strings.SplitSeq(w.header, "|") {
			rw.Header().Add("WWW-Authenticate", strings.ReplaceAll(v, "META", w.mcp.URL+"/.well-known/oauth-protected-resource/mcp"))
		}
		rw.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", document(&w.resource))
	as.HandleFunc("/.well-known/oauth-authorization-server/tenant", document(&w.metadata))
	as.HandleFunc("/register", func(rw http.ResponseWriter, r *http.Request) {
		var ask struct {
			Redirects []string `json:"redirect_uris"`
			Type      string   `json:"application_type"`
			Method    string   `json:"token_endpoint_auth_method"`
		}
		if json.NewDecoder(r.Body).Decode(&ask) != nil || ask.Type != "native" || len(ask.Redirects) != 1 || !strings.HasPrefix(ask.Redirects[0], "http://127.0.0.1:") {
			t.Errorf("registered with %+v", ask)
		}
		w.mu.Lock()
		w.methods = append(w.methods, ask.Method)
		w.mu.Unlock()
		rw.WriteHeader(http.StatusCreated)
		io.WriteString(rw, `{"client_id":"c1"}`)
	})
	as.HandleFunc("/token", w.token)
	as.HandleFunc("/revoke", func(_ http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.revoked = append(w.revoked, r)
	})
	return w
}

func (w *world) token(rw http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	w.mu.Lock()
	renewing := w.renewing
	w.mu.Unlock()
	if renewing != nil && r.PostForm.Get("grant_type") == "refresh_token" {
		if status := renewing(); status != 0 {
			rw.WriteHeader(status)
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, r.PostForm)
	f := r.PostForm
	refuse := func() {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		io.WriteString(rw, `{"error":"invalid_grant","error_description":"no"}`)
	}
	switch f.Get("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if f.Get("code") != w.code || w.code == "" || base64.RawURLEncoding.EncodeToString(sum[:]) != w.asked.Get("code_challenge") {
			refuse()
			return
		}
		w.code = ""
	case "refresh_token":
		if w.dead || f.Get("refresh_token") != fmt.Sprint("refresh-", w.access) { // one that was used is used up
			refuse()
			return
		}
		w.refresh++
	}
	w.access++
	w.valid = fmt.Sprint("access-", w.access)
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(rw, `{"access_token":%q,"token_type":%q,"expires_in":3600,"refresh_token":"refresh-%d","scope":"files:read"}`, w.valid, cmp.Or(w.kind, "bearer"), w.access)
}

func (w *world) server() *url.URL {
	u, err := url.Parse(w.mcp.URL + "/mcp?tenant=secret")
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// visit is a person who says yes.
func (w *world) visit(page, doubt string) error {
	u, err := url.Parse(page)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.doubt = doubt
	w.asked, w.code = u.Query(), "the-code"
	answer := w.answer
	w.mu.Unlock()
	redirect := u.Query().Get("redirect_uri")
	back := redirect + "?" + url.Values{"code": {"the-code"}, "state": {u.Query().Get("state")}, "iss": {w.as.URL + "/tenant"}}.Encode()
	if answer != nil {
		back = answer(redirect, u.Query())
	}
	go func() {
		if resp, err := http.Get(redirect + "?code=evil&state=guessed"); err == nil { // a page that knows no state
			resp.Body.Close()
			if resp.StatusCode != http.StatusNotFound {
				w.t.Errorf("a guessed state got %d", resp.StatusCode)
			}
		}
		if resp, err := http.Get(back); err == nil {
			resp.Body.Close()
		}
	}()
	return nil
}

func (w *world) login(o LoginOptions) (*Entry, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	o.Server, o.Visit = w.server(), w.visit
	return Login(ctx, o)
}

func TestLogin(t *testing.T) {
	w := newWorld(t)
	e, err := w.login(LoginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e.Access != "access-1" || e.Refresh != "refresh-1" || e.ClientID != "c1" || e.Resource != w.mcp.URL+"/mcp" || e.Scope != "files:read" || e.Server != w.mcp.URL+"/mcp" {
		t.Errorf("got %+v", e)
	}
	for name, want := range map[string]string{
		"resource": w.mcp.URL + "/mcp", "code_challenge_method": "S256", "response_type": "code", "scope": "files:read files:write offline_access", "client_id": "c1",
	} {
		if got := w.asked.Get(name); got != want {
			t.Errorf("asked with %s %q, want %q", name, got, want)
		}
	}
	if f := w.got[0]; f.Get("resource") != w.mcp.URL+"/mcp" || f.Get("client_id") != "c1" || f.Get("redirect_uri") != w.asked.Get("redirect_uri") {
		t.Errorf("the token was asked for with %v", f)
	}

	// It is kept for its user alone, and used.
	store := Store(filepath.Join(t.TempDir(), "logins"))
	if err := store.Save(e); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(store.path(w.server())); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("kept as %v, %v", info.Mode(), err)
	}
	if list, err := store.List(); err != nil || len(list) != 1 || list[0].Server != w.mcp.URL+"/mcp" {
		t.Errorf("list %v, %v", list, err)
	}
	tokens := store.Tokens(w.server(), "rootbound login X")
	if got, err := tokens.Token(t.Context()); got != "access-1" || err != nil {
		t.Errorf("token %q, %v", got, err)
	}

	// Near its end it is refreshed before it is used, for the same resource.
	tokens.now = func() time.Time { return time.Now().Add(time.Hour - margin/2) }
	if got, err := tokens.Token(t.Context()); got != "access-2" || err != nil {
		t.Errorf("token %q, %v", got, err)
	}
	tokens.now = time.Now
	if f := w.got[len(w.got)-1]; f.Get("grant_type") != "refresh_token" || f.Get("resource") != w.mcp.URL+"/mcp" || f.Get("code") != "" {
		t.Errorf("refreshed with %v", f)
	}

	// When that is not taken any more, the way out is said.
	w.mu.Lock()
	w.dead = true
	w.mu.Unlock()
	kept, _ := store.Load(w.server())
	err = tokens.Refused(t.Context(), 401, nil, kept.Access)
	if err == nil || !strings.Contains(err.Error(), "`rootbound login X` logs in again") || strings.Contains(err.Error(), "refresh-") {
		t.Errorf("got %v", err)
	}
	if err := tokens.Refused(t.Context(), 403, []string{`Bearer error="insufficient_scope", scope="more"`}, kept.Access); err == nil || !strings.Contains(err.Error(), "`rootbound login X --scope \"more\"`") {
		t.Errorf("got %v", err)
	}
	if was, err := store.Remove(t.Context(), w.server()); !was || err != nil {
		t.Errorf("removed %v, %v", was, err)
	}
	if was, err := store.Remove(t.Context(), w.server()); was || err != nil {
		t.Errorf("removed %v, %v", was, err)
	}
	if err := tokens.Refused(t.Context(), 401, nil, "x"); err == nil || !strings.Contains(err.Error(), "`rootbound login X` logs in") {
		t.Errorf("got %v", err)
	}
}

// A server that greets everybody may still want to know who asks for what comes then, and says there, or where documents are, how.
func TestLoginWhereEverybodyIsGreeted(t *testing.T) {
	for scope, open := range map[string]string{"files:read files:write offline_access": "initialize", "all offline_access": "jsonrpc"} {
		w := newWorld(t)
		inner := w.mcp.Config.Handler
		w.mcp.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), open) {
					return
				}
			}
			inner.ServeHTTP(rw, r)
		})
		e, err := w.login(LoginOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.asked.Get("scope"); e.Access != "access-1" || got != scope {
			t.Errorf("open for %s: got %+v, asked for %q", open, e, got)
		}
	}
}

// A token that one process refreshed is taken by the others; none is refreshed twice.
func TestOneRefreshesForAll(t *testing.T) {
	w := newWorld(t)
	e, err := w.login(LoginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store := Store(t.TempDir())
	if err := store.Save(e); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			tokens := store.Tokens(w.server(), "")
			if err := tokens.Refused(t.Context(), 401, nil, "access-1"); err != nil {
				t.Error(err)
			}
			if got, err := tokens.Token(t.Context()); got != "access-2" || err != nil {
				t.Errorf("token %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if w.refresh != 1 {
		t.Errorf("refreshed %d times", w.refresh)
	}
}

// A client that is registered by hand proves who it is by its secret, in the place that the authorization server wants.
func TestAClientOfItsOwn(t *testing.T) {
	w := newWorld(t)
	delete(w.metadata, "registration_endpoint")
	if _, err := w.login(LoginOptions{}); err == nil || !strings.Contains(err.Error(), "--client-id") {
		t.Errorf("got %v", err)
	}
	w.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
	e, err := w.login(LoginOptions{ClientID: "mine", ClientSecret: "hunter2", Scope: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if f := w.got[0]; f.Get("client_id") != "mine" || f.Get("client_secret") != "hunter2" || w.asked.Get("scope") != "s" || strings.Contains(w.asked.Encode(), "hunter2") {
		t.Errorf("asked with %v and %v: %+v", w.asked, f, e)
	}
}

func TestLoginsThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"no PKCE":          {func(w *world) { w.metadata["code_challenge_methods_supported"] = []string{"plain"} }, "PKCE"},
		"another issuer":   {func(w *world) { w.metadata["issuer"] = "https://evil.example" }, "another authorization server"},
		"another resource": {func(w *world) { w.resource["resource"] = "https://bank.example/mcp" }, "another server"},
		"a sibling":        {func(w *world) { w.resource["resource"] = w.mcp.URL + "/mc" }, "another server"},
		"no servers":       {func(w *world) { w.resource["authorization_servers"] = []string{} }, "names no authorization server"},
		"a plain server":   {func(w *world) { w.resource["authorization_servers"] = []string{"http://as.example"} }, "no URL to send secrets to"},
		"a plain endpoint": {func(w *world) { w.metadata["token_endpoint"] = "http://as.example/token" }, "token_endpoint is no URL"},
		"a script":         {func(w *world) { w.metadata["authorization_endpoint"] = "javascript:alert(1)" }, "authorization_endpoint is no URL"},
		"a file":           {func(w *world) { w.header = `Bearer resource_metadata="file:///etc/passwd"` }, "no URL to send secrets to"},
		"nothing said":     {func(w *world) { w.header = "Bearer"; w.resource = map[string]any{} }, "another server"},
		"another issuer came": {func(w *world) {
			w.answer = func(r string, q url.Values) string {
				return r + "?code=x&iss=https://evil.example&state=" + q.Get("state")
			}
		}, "came back from another authorization server"},
		"no issuer came": {func(w *world) {
			w.answer = func(r string, q url.Values) string { return r + "?code=x&state=" + q.Get("state") }
		}, "came back from another authorization server"},
		"denied": {func(w *world) {
			w.answer = func(r string, q url.Values) string {
				return r + "?error=access_denied&iss=" + url.QueryEscape(w.as.URL+"/tenant") + "&state=" + q.Get("state")
			}
		}, "access_denied"},
		"another code": {func(w *world) {
			w.answer = func(r string, q url.Values) string {
				return r + "?code=hunter2&iss=" + url.QueryEscape(w.as.URL+"/tenant") + "&state=" + q.Get("state")
			}
		}, "invalid_grant"},
		"another code behind a door": {func(w *world) {
			w.resource["resource"] = strings.Replace(w.mcp.URL, "http://", "http://bank.example@", 1) + "/mcp"
		}, "another server"},
		"documents elsewhere": {func(w *world) {
			elsewhere := httptest.NewServer(w.as.Config.Handler)
			w.t.Cleanup(elsewhere.Close)
			w.as.Config.Handler = http.RedirectHandler(elsewhere.URL+"/.well-known/oauth-authorization-server/tenant", http.StatusFound)
		}, "sends us on to another place"},
		"a document without an end": {func(w *world) {
			w.as.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(rw, strings.Repeat(" ", 1<<16)); err != nil {
						return
					}
				}
			})
		}, "too long"},
		"another kind of token": {func(w *world) { w.kind = "DPoP" }, "no bearer token"},
		"open": {func(w *world) {
			w.valid = ""
			w.mcp.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		}, "lets everybody in"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.change(w)
			e, err := w.login(LoginOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %+v, %v, want %q", e, err, tt.want)
			}
		})
	}
	u, _ := url.Parse("http://mcp.example.com/")
	if _, err := Login(t.Context(), LoginOptions{Server: u}); err == nil || !strings.Contains(err.Error(), "without https://") {
		t.Errorf("got %v", err)
	}
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := Login(ctx, LoginOptions{Server: w.server(), Visit: func(string, string) error { cancel(errors.New("enough")); return nil }})
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
}

func TestChallenges(t *testing.T) {
	for text, want := range map[string]challenge{
		`Bearer`: {}, `Bearer realm="a, b", scope="x y"`: {scope: "x y"}, `bearer scope=x,resource_metadata="https://h/\"q"`: {metadata: `https://h/"q`, scope: "x"},
		`Basic scope="x"`: {}, `Bearer scope="unended`: {scope: "unended"}, ``: {}, `Bearer =,=,`: {},
	} {
		if got := parseChallenge([]string{text}); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer realm="a, b", scope="x y"`)
	f.Fuzz(func(t *testing.T, s string) { parseChallenge([]string{s}) })
}

func TestWhereDocumentsAre(t *testing.T) {
	u, _ := url.Parse("https://h/a/b/")
	got := strings.Join(append(wellKnown(u, "oauth-authorization-server", true), wellKnown(u, "oauth-protected-resource", false)...), " ")
	want := "https://h/.well-known/oauth-authorization-server/a/b https://h/.well-known/openid-configuration/a/b https://h/a/b/.well-known/openid-configuration " +
		"https://h/.well-known/oauth-protected-resource/a/b https://h/.well-known/oauth-protected-resource"
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestDamagedLogins(t *testing.T) {
	u, _ := url.Parse("https://h/mcp")
	store := Store(t.TempDir())
	for _, text := range []string{"", "{", `{"server":"https://other/mcp","access_token":"hunter2"}`} {
		if err := os.WriteFile(store.path(u), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := store.Tokens(u, "").Token(t.Context())
		if err == nil || !strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// stored is a login of w in a directory, and what reads it there.
func (w *world) stored(store Store) *Tokens {
	w.t.Helper()
	e, err := w.login(LoginOptions{})
	if err == nil {
		err = store.Save(e)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return store.Tokens(w.server(), "rootbound login X")
}

// Whoever wanted the token may go while it is renewed. The old one is used up then, and the new one must not be lost.
func TestNobodyWaitsForATokenThatIsRenewed(t *testing.T) {
	w := newWorld(t)
	tokens := w.stored(Store(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	w.mu.Lock()
	w.renewing = func() int { cancel(); return 0 }
	w.mu.Unlock()
	tokens.Refused(ctx, 401, nil, "access-1")
	w.mu.Lock()
	w.renewing = nil
	w.mu.Unlock()
	if got, err := tokens.store.Tokens(w.server(), "").Token(t.Context()); got != "access-2" || err != nil {
		t.Errorf("token %q, %v", got, err)
	}
}

// Nor is one asked for by who has gone before it was his turn: where the authorization server does not answer, each of them would wait for it.
func TestATokenThatNobodyWaitsForIsNotRenewed(t *testing.T) {
	w := newWorld(t)
	tokens := w.stored(Store(t.TempDir()))
	asked := 0
	w.mu.Lock()
	w.renewing = func() int { asked++; return 0 }
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tokens.Refused(ctx, 401, nil, "access-1"); !errors.Is(err, context.Canceled) || asked != 0 {
		t.Errorf("it was asked for %d times: %v", asked, err)
	}
	if got, err := tokens.Token(ctx); got != "access-1" || err != nil {
		t.Errorf("token %q, %v", got, err)
	}
}

// An authorization server that does not answer holds up the logins at no other.
func TestALoginThatHangsHoldsUpNoOther(t *testing.T) {
	store := Store(t.TempDir())
	one, other := newWorld(t), newWorld(t)
	hanging, tokens := one.stored(store), other.stored(store)
	asked, answer := make(chan bool), make(chan bool)
	one.mu.Lock()
	one.renewing = func() int { close(asked); <-answer; return 0 }
	one.mu.Unlock()
	done := make(chan error)
	go func() { done <- hanging.Refused(t.Context(), 401, nil, "access-1") }()
	<-asked
	if err := tokens.Refused(t.Context(), 401, nil, "access-1"); err != nil {
		t.Error(err)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A login that is forgotten while another guard renews it stays forgotten.
func TestForgottenWhileItIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.metadata["revocation_endpoint"] = w.as.URL + "/revoke"
	store := Store(t.TempDir())
	tokens := w.stored(store)
	asked, answer := make(chan bool), make(chan bool)
	w.mu.Lock()
	w.renewing = func() int { close(asked); <-answer; return 0 }
	w.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { tokens.Refused(t.Context(), 401, nil, "access-1") })
	<-asked
	wg.Go(func() {
		if was, err := store.Remove(t.Context(), w.server()); !was || err != nil {
			t.Errorf("removed %v, %v", was, err)
		}
	})
	close(answer)
	wg.Wait()
	if e, err := store.Load(w.server()); e != nil || err != nil {
		t.Errorf("there is %+v, %v", e, err)
	}
	if len(w.revoked) != 1 || w.revoked[0].PostForm.Get("token") != "refresh-2" || w.revoked[0].PostForm.Get("client_id") != "c1" {
		t.Errorf("revoked %+v", w.revoked)
	}
}

// A failure of the authorization server that may pass is no end of the login, and a token that has not ended is used meanwhile.
func TestAnAuthorizationServerThatFails(t *testing.T) {
	w := newWorld(t)
	tokens := w.stored(Store(t.TempDir()))
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusForbidden} {
		w.mu.Lock()
		w.renewing = func() int { return status }
		w.mu.Unlock()
		err := tokens.Refused(t.Context(), 401, nil, "access-1")
		if err == nil || strings.Contains(err.Error(), "has ended") || !strings.Contains(err.Error(), fmt.Sprint(status)) || !strings.Contains(err.Error(), "`rootbound login X`") {
			t.Errorf("got %v", err)
		}
	}
	tokens.now = func() time.Time { return time.Now().Add(time.Hour - margin/2) }
	if got, err := tokens.Token(t.Context()); got != "access-1" || err != nil {
		t.Errorf("token %q, %v", got, err)
	}
	tokens.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if got, err := tokens.Token(t.Context()); got != "" || err == nil {
		t.Errorf("token %q, %v", got, err)
	}
}

// What a server calls a scope is no part of a command that somebody may copy.
func TestScopesThatAreNone(t *testing.T) {
	tokens := Store(t.TempDir()).Tokens(new(url.URL), "rootbound login X")
	for scope, want := range map[string]string{
		"files:read https://h/a.b_c-d+e*": "`rootbound login X --scope \"files:read https://h/a.b_c-d+e*\"`", "": "`rootbound login X --scope SCOPE`",
		"$(touch /tmp/x)": "`rootbound login X --scope SCOPE`", "a`id`": "`rootbound login X --scope SCOPE`", "a'b": "`rootbound login X --scope SCOPE`", "%PATH%": "`rootbound login X --scope SCOPE`",
	} {
		if err := tokens.Refused(t.Context(), 403, []string{`Bearer scope="` + scope + `"`}, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", scope, err)
		}
	}
}

// There are authorization servers that name ways first that we have not.
func TestHowAClientIsRegistered(t *testing.T) {
	for want, offered := range map[string][]string{
		"client_secret_basic": {"private_key_jwt", "client_secret_post", "client_secret_basic"}, "client_secret_post": {"tls_client_auth", "client_secret_post"}, "none": {"private_key_jwt", "none"},
	} {
		w := newWorld(t)
		w.metadata["token_endpoint_auth_methods_supported"] = offered
		if _, err := w.login(LoginOptions{}); err != nil || len(w.methods) != 1 || w.methods[0] != want {
			t.Errorf("%q: registered %q, %v", offered, w.methods, err)
		}
	}
}

// A page that is not the authorization server's own may be one of an honest one, whose code would go to it.
func TestAPageOfAnother(t *testing.T) {
	w := newWorld(t)
	if _, err := w.login(LoginOptions{}); err != nil || w.doubt != "" {
		t.Errorf("doubt %q, %v", w.doubt, err)
	}
	w.metadata["authorization_endpoint"] = "http://localhost:1/authorize"
	host := strings.TrimPrefix(w.as.URL, "http://")
	if _, err := w.login(LoginOptions{}); err != nil || !strings.Contains(w.doubt, "one of localhost:1, and "+host+" will get") {
		t.Errorf("doubt %q, %v", w.doubt, err)
	}
}
