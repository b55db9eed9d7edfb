// Package oauth gets and keeps the tokens by which MCP servers over HTTP let us in, as a client of OAuth 2.1.
//
//	store := oauth.Store("/home/me/.local/state/rootbound/logins")
//	login, err := oauth.Login(ctx, oauth.LoginOptions{Server: u, Visit: func(page, doubt string) error { … }})
//	err = store.Save(login)
//	tokens := store.Tokens(u, "rootbound login https://mcp.example.com/mcp") // for streamable.DialOptions.Auth
//
// Which authorization server is asked, the MCP server says (RFC 9728), and that one says how (RFC 8414, or OpenID Connect
// discovery). A client is registered (RFC 7591) unless one is given. The code is bound to us by PKCE with S256, every token to the
// MCP server by its resource indicator (RFC 8707), and the answer to the authorization server by its iss (RFC 9207) where that sends one.
//
// # Limits
//
// Tokens lie in files that only their user may read, as text: a program of the same user reads them too.
//
// Whom to ask is for the MCP server to say: a hostile one can send its user to a page of its own, and to any host over TLS for a
// little JSON. No token for another server, and no secret, goes there. The page may also be one of an authorization server that knows
// nothing of it, and whose code then goes to the hostile one, where that honest one sends no iss: the hosts that differ are told.
package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/rootbound/rootbound/internal/statefile"
)

// Entry is a login at one server.
type Entry struct {
	// Resource is the server, as the authorization server knows it.
	Resource string `json:"resource"`
	// Server is its URL, without a query.
	Server       string    `json:"server"`
	Issuer       string    `json:"issuer"`
	TokenURL     string    `json:"token_endpoint"`
	RevokeURL    string    `json:"revocation_endpoint,omitempty"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	InHeader     bool      `json:"client_secret_basic,omitempty"` // where the secret goes
	Scope        string    `json:"scope,omitempty"`
	Access       string    `json:"access_token"`
	Refresh      string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
}

// margin is how long before its end a token is not used any more.
const margin = 30 * time.Second

// stale reports whether the token has ended, or is about to.
func (e *Entry) stale(now time.Time) bool {
	return !e.Expiry.IsZero() && now.Add(margin).After(e.Expiry)
}

// config is the client at the authorization server.
func (e *Entry) config() *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if e.InHeader {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{ClientID: e.ClientID, ClientSecret: e.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: e.TokenURL, AuthStyle: style}}
}

// take takes a token.
func (e *Entry) take(t *oauth2.Token) error {
	if t.AccessToken == "" || !strings.EqualFold(t.Type(), "Bearer") || strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the authorization server gave no bearer token")
	}
	e.Access, e.Expiry = t.AccessToken, t.Expiry
	if t.RefreshToken != "" {
		e.Refresh = t.RefreshToken
	}
	return nil
}

// over is why a login has ended. Other errors may pass.
type over struct{ error }

// refresh gets another token.
func (e *Entry) refresh(ctx context.Context, client *http.Client) error {
	if e.Refresh == "" {
		return &over{errors.New("the authorization server gave nothing to get another token with")}
	}
	t, err := e.config().Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", e.Refresh),
		oauth2.SetAuthURLParam("resource", e.Resource))
	var re *oauth2.RetrieveError
	switch {
	case errors.As(err, &re) && re.ErrorCode != "" && re.Response.StatusCode < 500 && re.Response.StatusCode != http.StatusTooManyRequests:
		return &over{plain(err)}
	case err != nil:
		return plain(err)
	}
	return e.take(t)
}

// plain takes out of an error what may be a secret: the body of an answer.
func plain(err error) error {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) {
		var ue *url.Error
		if errors.As(err, &ue) {
			return ue.Err
		}
		return err
	}
	switch {
	case re.ErrorCode != "" && re.ErrorDescription != "":
		return fmt.Errorf("the authorization server refused it: %.60q, %.200q", re.ErrorCode, re.ErrorDescription)
	case re.ErrorCode != "":
		return fmt.Errorf("the authorization server refused it: %.60q", re.ErrorCode)
	}
	return fmt.Errorf("the authorization server answered %s", re.Response.Status)
}

// Store is a directory of logins, a file each.
type Store string

// canonical is a server's URL as it stands for it.
func canonical(u *url.URL) string {
	c := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}
	if c.Path == "/" {
		c.Path, c.RawPath = "", ""
	}
	return c.String()
}

func (s Store) path(server *url.URL) string {
	sum := sha256.Sum256([]byte(canonical(server)))
	return filepath.Join(string(s), hex.EncodeToString(sum[:8])+".json")
}

// Load returns the login at a server, nil when there is none.
func (s Store) Load(server *url.URL) (*Entry, error) {
	path := s.path(server)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a login: %w", err)
	}
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil || e.Server != canonical(server) {
		return nil, fmt.Errorf("reading a login: %q is damaged: remove it and log in again", path)
	}
	return &e, nil
}

// Save keeps a login, in the place of an older one at the same server.
func (s Store) Save(e *Entry) error {
	u, err := url.Parse(e.Server)
	if err == nil {
		err = s.locked(u, func() error { return s.write(u, e) })
	}
	if err != nil {
		return fmt.Errorf("keeping a login: %w", err)
	}
	return nil
}

func (s Store) write(server *url.URL, e *Entry) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return statefile.Replace(s.path(server), append(text, '\n'))
}

// locked calls f while no other process changes the login at a server. Each has a lock of its own: an authorization server that does
// not answer holds up no other login.
func (s Store) locked(server *url.URL, f func() error) error {
	return statefile.Locked(strings.TrimSuffix(s.path(server), ".json")+".lock", f)
}

// Remove forgets the login at a server, and has the authorization server forget it where it offers that. It reports whether there
// was one.
func (s Store) Remove(ctx context.Context, server *url.URL) (bool, error) {
	var e *Entry
	was := false
	err := s.locked(server, func() error { // or who renews it meanwhile keeps it anew
		var err error
		if e, err = s.Load(server); e == nil && err == nil {
			return nil
		}
		was = true
		return os.Remove(s.path(server))
	})
	if err != nil {
		return false, fmt.Errorf("forgetting a login: %w", err)
	}
	if e != nil && e.RevokeURL != "" {
		e.revoke(ctx)
	}
	return was, nil
}

// revoke has the authorization server forget a login, as far as it does that.
func (e *Entry) revoke(ctx context.Context) {
	form := url.Values{"token": {cmp.Or(e.Refresh, e.Access)}}
	if !e.InHeader {
		form.Set("client_id", e.ClientID)
	}
	if e.ClientSecret != "" && !e.InHeader {
		form.Set("client_secret", e.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if e.InHeader {
		req.SetBasicAuth(url.QueryEscape(e.ClientID), url.QueryEscape(e.ClientSecret))
	}
	if resp, err := newClient().Do(req); err == nil {
		resp.Body.Close()
	}
}

// List returns all logins that can be read, by server.
func (s Store) List() ([]*Entry, error) {
	names, err := filepath.Glob(filepath.Join(string(s), "*.json"))
	if err != nil {
		return nil, err
	}
	var list []*Entry
	for _, name := range names {
		var e Entry
		if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &e) == nil {
			list = append(list, &e)
		}
	}
	return list, nil
}

const (
	// maxDocument is how long what a server says of itself may be.
	maxDocument = 1 << 20
	// patience is how long one answer may take.
	patience = 20 * time.Second
)

// newClient is a client that is not led to another origin.
func newClient() *http.Client {
	return &http.Client{Timeout: patience, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host || len(via) > 5 || req.Method != via[0].Method {
			return fmt.Errorf("it sends us on to another place, %s", req.URL.Host)
		}
		return nil
	}}
}

// secure reports whether what is sent to u stays between us: over TLS, or on this machine where the MCP server is on it, too.
func secure(u, server *url.URL) bool {
	return u.Scheme == "https" && u.Host != "" || u.Scheme == "http" && loopback(u) && loopback(server)
}

func loopback(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.IsLoopback()
}

// endpoint reads a URL that a document says.
func endpoint(name, text string, server *url.URL) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, fmt.Errorf("it has no %s", name)
	case err != nil || !secure(u, server) || u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("its %s is no URL to send secrets to: %.200q", name, text)
	}
	return u, nil
}

// errNone is that there is no document at a place.
var errNone = errors.New("there is none")

// fetch reads a JSON document.
func fetch(ctx context.Context, client *http.Client, u string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errNone
	}
	return decode(resp.Body, into)
}

func decode(r io.Reader, into any) error {
	b, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	switch {
	case err != nil:
		return err
	case len(b) > maxDocument:
		return errors.New("what it says is too long")
	}
	if err := json.Unmarshal(b, into); err != nil {
		return errNone // a web page, for instance
	}
	return nil
}
