package config

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
)

// ProtocolWords are the values of server_protocol and client_protocol.
var ProtocolWords = []string{"auto", "legacy", "modern", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func protocolSchema() part { return part{"enum": ProtocolWords} }

// Remote is where a server is that Rootbound does not start.
type Remote struct {
	// URL is its endpoint, not Given for a server that is started.
	URL Setting[string]
	// Headers go with every request. A value may hold ${env:NAME} and ${file:PATH}, which Secrets fills.
	Headers Setting[map[string]string]
}

// ParseURL reads the URL of a server.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("this is no URL") // its text may have secrets
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("a server's URL begins with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("there is no host in the URL")
	case u.User != nil:
		return nil, errors.New("a name or password does not stand in the URL, where others read it: send it with a header")
	case u.Fragment != "":
		return nil, errors.New("a server's URL has no fragment (#…)")
	}
	return u, nil
}

// PlainURL is a URL as it may be told: without its query, which may hold a secret.
func PlainURL(u *url.URL) string {
	s := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		s += "?…"
	}
	return s
}

// Loopback reports whether a URL leads to this machine by its words.
func Loopback(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
}

// reserved are headers that are not for an operator to set.
var reserved = []string{
	"Host", "Content-Length", "Content-Type", "Accept", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Last-Event-Id",
}

// checkHeader says what is wrong with a header, without its value.
func checkHeader(name, value string) error {
	token := func(r rune) bool {
		return r > '~' || r <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || strings.ContainsFunc(name, token):
		return fmt.Errorf("%q is no name of a header", name)
	case slices.Contains(reserved, canonical) || strings.HasPrefix(canonical, "Mcp-"):
		return fmt.Errorf("the header %q is ours to set", name)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return fmt.Errorf("the value of the header %q has a character that a header cannot have", name)
	}
	return placeholders(value, func(kind, arg string) (string, error) { return "", nil }, nil)
}

// parseHeader reads the value "NAME: VALUE" of --header.
func parseHeader(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return "", "", errors.New("a header is written NAME: VALUE") // the text may be a secret
	}
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	return name, value, checkHeader(name, value)
}

// Secrets fills ${env:NAME} and ${file:PATH} in a value.
func Secrets(value string, env func(string) (string, bool), file func(string) (string, error)) (string, error) {
	var out strings.Builder
	err := placeholders(value, func(kind, arg string) (string, error) {
		if kind == "file" {
			return file(expandHome(arg))
		}
		v, ok := env(arg)
		if !ok {
			return "", fmt.Errorf("the environment variable %q is not set", arg)
		}
		return v, nil
	}, &out)
	if err != nil {
		return "", err
	}
	return out.String(), nil
}

// placeholders calls fill with each ${KIND:ARG}, and writes the text that it makes to out.
func placeholders(value string, fill func(kind, arg string) (string, error), out *strings.Builder) error {
	if out == nil {
		out = new(strings.Builder)
	}
	for {
		before, rest, ok := strings.Cut(value, "${")
		out.WriteString(before)
		if !ok {
			return nil
		}
		name, after, ok := strings.Cut(rest, "}")
		kind, arg, two := strings.Cut(name, ":")
		if !two {
			kind, arg = "env", name // as some clients write it
		}
		if !ok || arg == "" || kind != "env" && kind != "file" {
			return errors.New("a placeholder is written ${env:NAME} or ${file:PATH}")
		}
		text, err := fill(kind, arg)
		if err != nil {
			return err
		}
		out.WriteString(text)
		value = after
	}
}

// url reads the URL of a server.
func (d *decoder) url(v *splice.Value) Setting[string] {
	s := d.text(v)
	if s.Given() {
		if _, err := ParseURL(s.Value); err != nil {
			d.fault(v.Pos, "%v", err)
		}
	}
	return s
}

func (d *decoder) headers(v *splice.Value) Setting[map[string]string] {
	m := d.textMap(v)
	for name, value := range m.Value {
		if err := checkHeader(name, value); err != nil {
			d.fault(v.Pos, "%v", err)
		}
	}
	return m
}

// remotePaths reads directories of another machine, which are absolute there.
func (d *decoder) remotePaths(v *splice.Value) Setting[[]string] {
	list := d.texts(v)
	for i, p := range list.Value {
		if err := checkRemoteRoot(p); err != nil {
			d.fault(v.Items[i].Pos, "%v", err)
		}
	}
	return list
}

func checkRemoteRoot(p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p {
		return fmt.Errorf("%q is no absolute path of another machine, such as /srv/repo", p)
	}
	return nil
}

func (d *decoder) protocol(v *splice.Value) Setting[string] {
	words := make(words[string], len(ProtocolWords))
	for i, w := range ProtocolWords {
		words[i].word, words[i].value = w, w
	}
	return enum(d, v, words)
}

// remote resolves where the server is, what it may know and how it is spoken to.
func (r *resolver) remote(s *Server) error {
	p := r.p
	if s != nil {
		p.URL, p.Headers = s.URL, s.Headers
	}
	if r.flags.URL != "" {
		if _, err := ParseURL(r.flags.URL); err != nil {
			return UsageError{fmt.Errorf("reading --url: %w", err)}
		}
		p.URL = Setting[string]{r.flags.URL, Origin{Word: "--url"}}
		p.Headers = Setting[map[string]string]{}
		p.Command, p.CommandOrigin = launch.Command{}, p.URL.Origin
	} else if len(r.flags.Command) > 0 {
		p.Remote = Remote{}
	}
	if len(r.flags.Headers) > 0 {
		if !p.URL.Given() {
			return UsageError{errors.New("--header is for a server on another machine: name it with --url")}
		}
		all := map[string]string{}
		for name, value := range p.Headers.Value {
			all[http.CanonicalHeaderKey(name)] = value
		}
		for _, h := range r.flags.Headers {
			name, value, err := parseHeader(h)
			if err != nil {
				return UsageError{fmt.Errorf("reading --header: %w", err)}
			}
			all[http.CanonicalHeaderKey(name)] = value
		}
		p.Headers = Setting[map[string]string]{all, Origin{Word: "--header"}}
	}
	if p.URL.Given() {
		p.CommandOrigin = p.URL.Origin
		if len(r.flags.Command) > 0 {
			return UsageError{errors.New("a server has a command or a URL, and not both")}
		}
	}
	for _, root := range r.flags.RemoteRoots {
		if err := checkRemoteRoot(root); err != nil {
			return UsageError{fmt.Errorf("reading --remote-root: %w", err)}
		}
	}
	for flag, word := range map[string]string{"--server-protocol": r.flags.ServerProtocol, "--client-protocol": r.flags.ClientProtocol} {
		if word != "" && !slices.Contains(ProtocolWords, word) {
			return UsageError{fmt.Errorf("reading %s %q: known are %s", flag, word, strings.Join(ProtocolWords, ", "))}
		}
	}
	return nil
}

// speaks resolves the settings that are for servers on other machines, and how the two sides are spoken to.
func (r *resolver) speaks() {
	p := r.p
	typed := func(flag, word string) Setting[string] {
		if word == "" {
			return Setting[string]{}
		}
		return Setting[string]{word, Origin{Word: flag}}
	}
	p.ServerProtocol = first(typed("--server-protocol", r.flags.ServerProtocol), r.operator.ServerProtocol, r.managed.ServerProtocol, usual("auto"))
	p.ClientProtocol = first(typed("--client-protocol", r.flags.ClientProtocol), r.operator.ClientProtocol, r.managed.ClientProtocol, usual("auto"))
	var flagged Setting[[]string]
	if len(r.flags.RemoteRoots) > 0 {
		flagged = Setting[[]string]{r.flags.RemoteRoots, Origin{Word: "--remote-root"}}
	}
	if r.managed.RemoteRoots.Given() && flagged.Given() {
		r.note("--remote-root has no effect: %s decides", r.managed.RemoteRoots.Origin)
	}
	p.RemoteRoots = first(r.managed.RemoteRoots, flagged, r.operator.RemoteRoots)
	if r.flags.ShareRoots {
		r.flagged.ShareRoots = Setting[bool]{true, Origin{Word: "--share-roots"}}
	}
	if r.flags.ForwardAuthorization {
		r.flagged.ForwardAuthorization = Setting[bool]{true, Origin{Word: "--forward-authorization"}}
	}
	p.ShareRoots = narrow(r, "share_roots", func(s Settings) Setting[bool] { return s.ShareRoots }, usual(false), false, true)
	p.ForwardAuthorization = narrow(r, "forward_authorization", func(s Settings) Setting[bool] { return s.ForwardAuthorization }, usual(false), false, true)
	if p.URL.Given() {
		return
	}
	for _, s := range []struct {
		key    string
		origin Origin
		given  bool
	}{
		{"share_roots", p.ShareRoots.Origin, p.ShareRoots.Value}, {"forward_authorization", p.ForwardAuthorization.Origin, p.ForwardAuthorization.Value},
		{"remote_roots", p.RemoteRoots.Origin, p.RemoteRoots.Given()},
	} {
		if s.given && p.Command.Path != "" {
			r.note("%s: %s has no effect: the server is started here", s.origin, s.key)
		}
	}
}
