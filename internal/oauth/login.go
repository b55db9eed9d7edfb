package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// LoginOptions of a login.
type LoginOptions struct {
	// Server is the MCP server.
	Server *url.URL
	// Scope is what is asked for; "" is what the server says that it needs.
	Scope string
	// ClientID and ClientSecret are a client that is registered already; without one we register.
	ClientID, ClientSecret string
	// Port is where the browser comes back to, on this machine; 0 is any that is free.
	Port int
	// Visit has the person visit a page. Doubt, if it is not empty, is why to look at it twice.
	Visit func(page, doubt string) error
}

// Login logs in. It waits for the person until ctx ends.
func Login(ctx context.Context, o LoginOptions) (*Entry, error) {
	if !secure(o.Server, o.Server) {
		return nil, errors.New("logging in to a server without https:// would give the token to everybody on the way")
	}
	client := newClient()
	c, open, err := refusal(ctx, client, o.Server)
	if err != nil {
		return nil, err
	}
	r, err := protection(ctx, client, o.Server, c)
	switch {
	case err != nil && open: // else it greets everybody, and asks who it is for what comes then
		return nil, errors.New("the server lets everybody in: there is nothing to log in to")
	case err != nil:
		return nil, err
	}
	a, err := issuer(ctx, client, o.Server, r.Servers[0])
	if err != nil {
		return nil, err
	}
	back, err := newCallback(o.Port)
	if err != nil {
		return nil, err
	}
	defer back.close()
	e := &Entry{
		Resource: r.Resource, Server: canonical(o.Server), Issuer: a.Issuer, TokenURL: a.Token, RevokeURL: a.Revoke,
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, InHeader: o.ClientSecret != "" && inHeader(a.Auth),
		Scope: scope(o.Scope, c, r, a),
	}
	if e.ClientID == "" {
		if err := register(ctx, client, a, e, back.url); err != nil {
			return nil, err
		}
	}
	cfg := e.config()
	cfg.RedirectURL, cfg.Endpoint.AuthURL = back.url, a.Authorize
	if e.Scope != "" {
		cfg.Scopes = strings.Fields(e.Scope)
	}
	verifier := oauth2.GenerateVerifier()
	page := cfg.AuthCodeURL(back.state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", e.Resource))
	doubt := ""
	if issuer, err := url.Parse(a.Issuer); err != nil || issuer.Host != a.authorizeURL.Host {
		doubt = fmt.Sprintf("the page is one of %s, and %s will get what comes of it: say yes there only if you know that they belong together", a.authorizeURL.Host, place(a.Token))
	}
	if err := o.Visit(page, doubt); err != nil {
		return nil, err
	}
	code, err := back.wait(ctx, a)
	if err != nil {
		return nil, err
	}
	t, err := cfg.Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), code, oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("resource", e.Resource))
	if err != nil {
		return nil, fmt.Errorf("getting a token for the code: %w", plain(err))
	}
	if err := e.take(t); err != nil {
		return nil, err
	}
	if s, ok := t.Extra("scope").(string); ok && s != "" {
		e.Scope = s
	}
	return e, nil
}

// place is the host of a URL that was read before.
func place(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Host
}

// inHeader reports whether a secret goes into a header, as it does where nothing is said.
func inHeader(methods []string) bool {
	return len(methods) == 0 || slices.Contains(methods, "client_secret_basic")
}

// scope is what is asked for: what was said, what the server named when it refused us, or all that it knows.
func scope(said string, c challenge, r resource, a authority) string {
	if said != "" {
		return said
	}
	s := c.scope
	if s == "" {
		s = strings.Join(r.Scopes, " ")
	}
	if s != "" && slices.Contains(a.Scopes, "offline_access") && !slices.Contains(strings.Fields(s), "offline_access") {
		s += " offline_access" // or there is nothing to get another token with
	}
	return s
}

// register makes us a client of the authorization server.
func register(ctx context.Context, client *http.Client, a authority, e *Entry, redirect string) error {
	if a.Register == "" {
		return fmt.Errorf("the authorization server %s registers no clients by itself: register one there by hand, with the redirect URI %s, and give its --client-id", a.authorizeURL.Host, redirect)
	}
	ask := map[string]any{
		"client_name": "Rootbound", "redirect_uris": []string{redirect}, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": "none",
		"application_type": "native", // "web", which is what nothing means, may not come back to this machine
	}
	if len(a.Auth) > 0 && !slices.Contains(a.Auth, "none") { // of its ways to show a secret, one that we have
		ask["token_endpoint_auth_method"] = "client_secret_post"
		if inHeader(a.Auth) {
			ask["token_endpoint_auth_method"] = "client_secret_basic"
		}
	}
	if e.Scope != "" {
		ask["scope"] = e.Scope
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Register, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("registering at the authorization server: %w", plain(err))
	}
	defer resp.Body.Close()
	var got struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
		Error  string `json:"error"`
	}
	if err := decode(resp.Body, &got); err != nil || got.ID == "" {
		return fmt.Errorf("registering at the authorization server: it answered %s %.60q", resp.Status, got.Error)
	}
	e.ClientID, e.ClientSecret = got.ID, got.Secret
	e.InHeader = got.Secret != "" && (got.Method == "client_secret_basic" || got.Method == "")
	return nil
}

// callback is where the browser comes back to.
type callback struct {
	url, state string
	ln         net.Listener
	server     *http.Server
	came       chan url.Values
}

func newCallback(port int) (*callback, error) {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening for the browser to come back: %w", err)
	}
	c := &callback{url: "http://" + ln.Addr().String() + "/callback", state: rand.Text(), ln: ln, came: make(chan url.Values, 1)}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: patience, MaxHeaderBytes: 64 << 10}
	go c.server.Serve(ln)
	return c, nil
}

func (c *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the page that says so is still being written
	defer cancel()
	c.server.Shutdown(ctx)
	c.server.Close()
}

// ServeHTTP implements http.Handler. Only who knows the state says anything.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	q := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != "/callback" || r.Host != c.ln.Addr().String() ||
		subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(c.state)) != 1 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	select {
	case c.came <- q:
		fmt.Fprintln(w, "You can close this page and go back to your terminal.")
	default:
		w.WriteHeader(http.StatusGone)
	}
}

// wait waits for the browser, and returns the code that it brings.
func (c *callback) wait(ctx context.Context, a authority) (string, error) {
	var q url.Values
	select {
	case q = <-c.came:
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the browser to come back: %w", context.Cause(ctx))
	}
	iss := q.Get("iss")
	switch {
	case iss != "" && iss != a.Issuer, iss == "" && a.SendsIssuer:
		return "", fmt.Errorf("the browser came back from another authorization server, %.200q", iss)
	case q.Get("error") != "":
		return "", fmt.Errorf("the authorization server let nobody in: %.60q %.200q", q.Get("error"), q.Get("error_description"))
	case q.Get("code") == "":
		return "", errors.New("the browser came back without a code")
	}
	return q.Get("code"), nil
}
