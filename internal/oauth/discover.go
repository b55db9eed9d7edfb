package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource is what an MCP server says of its protection (RFC 9728).
type resource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// authority is what an authorization server says of itself (RFC 8414).
type authority struct {
	Issuer       string   `json:"issuer"`
	Authorize    string   `json:"authorization_endpoint"`
	Token        string   `json:"token_endpoint"`
	Register     string   `json:"registration_endpoint"`
	Revoke       string   `json:"revocation_endpoint"`
	Challenges   []string `json:"code_challenge_methods_supported"`
	Auth         []string `json:"token_endpoint_auth_methods_supported"`
	Scopes       []string `json:"scopes_supported"`
	SendsIssuer  bool     `json:"authorization_response_iss_parameter_supported"`
	authorizeURL *url.URL
}

// challenge is what a server said when it refused us.
type challenge struct{ metadata, scope string }

// parseChallenge reads the values of WWW-Authenticate: the parameters of the scheme Bearer.
func parseChallenge(values []string) (c challenge) {
	for _, v := range values {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		for rest != "" {
			var name, value string
			name, rest, _ = strings.Cut(rest, "=")
			if after, ok := strings.CutPrefix(rest, `"`); ok {
				value, rest = quoted(after)
			} else {
				value, rest, _ = strings.Cut(rest, ",")
			}
			rest = strings.TrimLeft(rest, ", ")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "resource_metadata":
				c.metadata = value
			case "scope":
				c.scope = strings.TrimSpace(value)
			}
		}
	}
	return c
}

// quoted reads a quoted string up to its end.
func quoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c == '"':
			return b.String(), s[i+1:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// probes are what is sent to see how a server refuses those whom it does not know. Some greet everybody, and refuse what comes then.
var probes = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rootbound","version":"0"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
}

// refusal asks the server without a token, and returns how it refuses that, or that it does not.
func refusal(ctx context.Context, client *http.Client, server *url.URL) (c challenge, open bool, err error) {
	for _, probe := range probes {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.String(), strings.NewReader(probe))
		if err != nil {
			return challenge{}, false, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := client.Do(req)
		if err != nil {
			return challenge{}, false, fmt.Errorf("reaching the server: %w", plain(err))
		}
		resp.Body.Close() // it may be a stream without an end
		switch {
		case resp.StatusCode >= 200 && resp.StatusCode < 300:
			open = true
		case !open || resp.StatusCode == http.StatusUnauthorized:
			return parseChallenge(resp.Header.Values("WWW-Authenticate")), false, nil
		}
	}
	return challenge{}, open, nil
}

// protection finds what the server says of its protection.
func protection(ctx context.Context, client *http.Client, server *url.URL, c challenge) (resource, error) {
	var places []string
	if c.metadata != "" {
		u, err := endpoint("resource_metadata", c.metadata, server)
		if err != nil {
			return resource{}, fmt.Errorf("reading how the server refuses us: %w", err)
		}
		places = append(places, u.String())
	} else {
		places = wellKnown(server, "oauth-protected-resource", false)
	}
	for _, place := range places {
		var r resource
		switch err := fetch(ctx, client, place, &r); {
		case errors.Is(err, errNone):
			continue
		case err != nil:
			return r, fmt.Errorf("reading %s: %w", place, err)
		case !covers(r.Resource, server):
			return r, fmt.Errorf("reading %s: it is about another server, %.200q", place, r.Resource)
		case len(r.Servers) == 0:
			return r, fmt.Errorf("reading %s: it names no authorization server", place)
		}
		return r, nil
	}
	return resource{}, errors.New("the server does not say where to log in: it may want a token of its own kind (--header)")
}

// covers reports whether a resource is the server, or holds it.
func covers(text string, server *url.URL) bool {
	r, err := url.Parse(text)
	if err != nil || text == "" || r.User != nil || r.Fragment != "" {
		return false
	}
	a, b := canonical(r), canonical(server)
	return a == b || strings.HasPrefix(b, strings.TrimSuffix(a, "/")+"/")
}

// wellKnown are the places where a document about u can be. With oidc also that of OpenID Connect for a path.
func wellKnown(u *url.URL, name string, oidc bool) []string {
	at := func(path string) string {
		v := url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}
		return v.String()
	}
	path := strings.TrimSuffix(u.Path, "/")
	list := []string{at("/.well-known/" + name + path)}
	switch {
	case oidc:
		list = append(list, at("/.well-known/openid-configuration"+path))
		if path != "" {
			list = append(list, at(path+"/.well-known/openid-configuration"))
		}
	case path != "":
		list = append(list, at("/.well-known/"+name))
	}
	return list
}

// issuer finds what an authorization server says of itself, and refuses one that is not safe to use.
func issuer(ctx context.Context, client *http.Client, server *url.URL, name string) (authority, error) {
	u, err := endpoint("authorization server", name, server)
	if err != nil {
		return authority{}, fmt.Errorf("reading where to log in: %w", err)
	}
	for _, place := range wellKnown(u, "oauth-authorization-server", true) {
		var a authority
		switch err := fetch(ctx, client, place, &a); {
		case errors.Is(err, errNone):
			continue
		case err != nil:
			return a, fmt.Errorf("reading %s: %w", place, err)
		case strings.TrimSuffix(a.Issuer, "/") != strings.TrimSuffix(name, "/"):
			return a, fmt.Errorf("reading %s: it is about another authorization server, %.200q", place, a.Issuer)
		case !slices.Contains(a.Challenges, "S256"):
			return a, fmt.Errorf("reading %s: it does not bind the code to who asked for it (PKCE with S256), which makes a login unsafe", place)
		}
		if a.authorizeURL, err = endpoint("authorization_endpoint", a.Authorize, server); err == nil {
			_, err = endpoint("token_endpoint", a.Token, server)
		}
		for name, optional := range map[string]string{"registration_endpoint": a.Register, "revocation_endpoint": a.Revoke} {
			if err == nil && optional != "" {
				_, err = endpoint(name, optional, server)
			}
		}
		if err != nil {
			return a, fmt.Errorf("reading %s: %w", place, err)
		}
		return a, nil
	}
	return authority{}, fmt.Errorf("the authorization server %s says nothing of itself", u.Host)
}
