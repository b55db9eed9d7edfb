package streamable

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// newHTTPClient returns a client that goes where it is sent and nowhere else. Proxies are those of the environment.
func newHTTPClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	t.IdleConnTimeout = 30 * time.Second
	t.MaxIdleConns, t.MaxIdleConnsPerHost = maxPosts, maxPosts // to make one anew costs more than a call
	t.MaxResponseHeaderBytes = 1 << 20
	t.DisableCompression = true // a stream is read event by event, and nothing unfolds
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

// redirected is a way that is not gone.
type redirected struct{ text string }

func (e *redirected) Error() string { return e.text }

// checkRedirect follows a redirect within one origin that keeps what is sent, and no other: another origin would get what was
// meant for this one.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case !sameOrigin(req.URL, first.URL):
		return &redirected{fmt.Sprintf("it sends us on to another place, %s; where that is right, use its URL", place(req.URL))}
	case req.Method != first.Method:
		return &redirected{fmt.Sprintf("it sends us on to %s in a way that drops what was sent; use that URL", place(req.URL))}
	case len(via) > 5:
		return &redirected{"it sends us round in circles"}
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case strings.EqualFold(u.Scheme, "http"):
		return "80"
	}
	return "443"
}

// place is a URL as it may be told: without what may be a secret.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// request is one HTTP request to the server.
type request struct {
	method            string
	to                *url.URL // nil is the endpoint
	body              []byte
	header            http.Header
	session, revision string
	lastEvent         string
	key               string // of the message
	again             bool   // it changes nothing, and may be sent again
}

// request makes the POST of a message in a session.
func (l *Link) request(m *wire.Message, s session) request {
	r := request{method: http.MethodPost, body: m.Bytes(), again: repeatable[m.Method()]}
	if m.Kind() == wire.Request {
		r.key = m.Key()
	}
	switch {
	case stateless(m):
		r.revision = wire.GetString(m.Meta(), exchange.MetaVersion)
		r.header = l.tools.mirror(m)
	case s.old:
		r.to = s.endpoint
	case m.Method() != "initialize":
		r.session, r.revision = s.id, s.revision
	}
	return r
}

// do sends a request, once more when a token that was refused is replaced: then the server has not taken it yet.
func (l *Link) do(ctx context.Context, r request) (*http.Response, error) {
	resp, token, err := l.once(ctx, r)
	if err != nil || l.o.Auth == nil || !refusesToken(resp) || l.fixed(r) {
		return resp, err
	}
	drain(resp)
	if err := l.o.Auth.Refused(ctx, resp.StatusCode, resp.Header.Values("WWW-Authenticate"), token); err != nil {
		return nil, &unauthorized{err}
	}
	resp, _, err = l.once(ctx, r)
	return resp, err
}

// unauthorized says what is missing for the server to let us in.
type unauthorized struct{ error }

// fixed reports whether what authorizes a request is not for the Authorizer to say.
func (l *Link) fixed(r request) bool {
	return l.o.Header.Get("Authorization") != "" || l.forwarded(r) != ""
}

func (l *Link) forwarded(r request) string {
	if l.o.Forwarded == nil {
		return ""
	}
	return l.o.Forwarded(r.key)
}

func refusesToken(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden && strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), ","), "insufficient_scope")
}

func (l *Link) once(ctx context.Context, r request) (*http.Response, string, error) {
	to := l.o.URL
	if r.to != nil {
		to = r.to
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body) // with which a request that was not sent at all can be sent over another connection
	}
	req, err := http.NewRequestWithContext(ctx, r.method, "", body)
	if err != nil {
		return nil, "", err
	}
	u := *to
	u.Host = strings.TrimSuffix(u.Host, ":")
	req.URL, req.Host = &u, u.Host
	for name, values := range l.o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	set := func(key, value string) {
		if value != "" {
			req.Header[key] = []string{value}
		}
	}
	if r.again { // without a value it is not sent: it says that an idle connection which the server had just closed is no failure
		req.Header["Idempotency-Key"] = nil
	}
	set("User-Agent", l.o.Agent)
	set(headerVersion, r.revision)
	set(headerSession, r.session)
	set(headerLastEvent, r.lastEvent)
	switch r.method {
	case http.MethodPost:
		set("Content-Type", "application/json")
		set("Accept", "application/json, text/event-stream")
	case http.MethodGet:
		set("Accept", "text/event-stream")
		set("Cache-Control", "no-store")
	}
	token := ""
	switch forwarded := l.forwarded(r); {
	case forwarded != "":
		set("Authorization", forwarded)
	case l.o.Header.Get("Authorization") != "" || l.o.Auth == nil:
	default:
		if token, err = l.o.Auth.Token(ctx); err != nil {
			return nil, "", &unauthorized{err}
		}
		if token != "" {
			set("Authorization", "Bearer "+token)
		}
	}
	resp, err := l.client.Do(req)
	return resp, token, err
}

// drain reads what is little of a body, so that its connection can be used again.
func drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 64<<10)
	resp.Body.Close()
}

// mediaType is what a response says that its body is.
func mediaType(resp *http.Response) string {
	if t := resp.Header.Get("Content-Type"); t == "application/json" || t == "text/event-stream" {
		return t
	}
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return t
}

// maxErrorBody is how much of the body of a refusal is read.
const maxErrorBody = 256 << 10

// refusal is why the server did not take a request: its words, if it has some, and else what its status means. Reason is
// a word that does not change.
type refusal struct {
	reason, text string
	status       int
	said         *wire.Message // an error of JSON-RPC
}

func (r *refusal) Error() string { return r.text }

// refused reads a response that is no success.
func refused(resp *http.Response, s session) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	r := &refusal{status: resp.StatusCode}
	if m, err := wire.Scan(bytes.TrimSpace(body), wire.Lenient); err == nil && m.Kind() == wire.Response && m.Error() != nil && resp.StatusCode != http.StatusUnauthorized {
		oneLine(m.Bytes())
		r.said = &m
	}
	if forgets(resp.StatusCode, r.said, s) {
		return errForgotten
	}
	r.reason, r.text = explainStatus(resp, body)
	return r
}

// forgets reports whether a status says that the session is not known. There are servers that say so with 400, in words.
func forgets(status int, said *wire.Message, s session) bool {
	if s.id == "" {
		return false
	}
	return status == http.StatusNotFound || status == http.StatusBadRequest && said != nil && stringsFold(wire.GetString(said.Error(), "message"), "session")
}

func stringsFold(s, sub string) bool { return strings.Contains(strings.ToLower(s), sub) }

// explainStatus says what a status means here.
func explainStatus(resp *http.Response, body []byte) (reason, text string) {
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	said := ""
	if t := mediaType(resp); t == "text/html" {
		said = ", with a web page"
	} else if words := strings.Join(strings.Fields(string(body[:min(len(body), 300)])), " "); words != "" {
		said = fmt.Sprintf(", and said %.200q", words)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized:
		return "unauthorized", "the server wants to know who asks (" + status + said + "): `rootbound login URL` gets a token where the server has a login, and --header sends one"
	case code == http.StatusForbidden:
		return "forbidden", "the server does not let us do that (" + status + said + ")"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return "not found", "there is no MCP server at this URL (" + status + said + "): is its path right?"
	case code == http.StatusTooManyRequests:
		if after := resp.Header.Get("Retry-After"); after != "" {
			said += fmt.Sprintf(", to come back after %.40q", after)
		}
		return "refused", "the server has too much to do (" + status + said + ")"
	case code >= 500:
		return "server error", "the server failed (" + status + said + ")"
	case code >= 300 && code < 400:
		return "refused", fmt.Sprintf("the server sends us on to %.200q, without a way to go there (%s)", resp.Header.Get("Location"), status)
	}
	return "refused", "the server refused the request (" + status + said + ")"
}

// accepted reads the response to what has no answer.
func (l *Link) accepted(resp *http.Response, s session) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		drain(resp)
		return nil
	}
	return refused(resp, s)
}

// explain says why a server was not reached, in words that say what to do.
func explain(err error, to *url.URL) (reason, text string) {
	var (
		un        *unauthorized
		re        *redirected
		dns       *net.DNSError
		cert      *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		op        *net.OpError
		where     = "reaching " + place(to) + ": "
		alert     tls.AlertError
		unwrapped *url.Error
	)
	if errors.As(err, &unwrapped) {
		err = unwrapped.Err // its text has the URL, with whatever is in it
	}
	switch {
	case errors.As(err, &un):
		return "unauthorized", un.error.Error()
	case errors.As(err, &re):
		return "redirected", where + re.text
	case errors.As(err, &dns) && dns.IsNotFound:
		return "unreachable", fmt.Sprintf("%sthere is no host %q: is the name right?", where, dns.Name)
	case errors.As(err, &dns):
		return "unreachable", fmt.Sprintf("%slooking up %q: %s", where, dns.Name, dns.Err)
	case errors.As(err, &cert):
		return "unreachable", fmt.Sprintf("%sits certificate is not one that this machine trusts: %v (SSL_CERT_FILE names further ones)", where, cert.Err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "unreachable", where + "it does not speak TLS there: is it http:// and not https://?"
	case errors.As(err, &alert):
		return "unreachable", fmt.Sprintf("%sit ended the TLS handshake: %v", where, alert)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "unreachable", where + "nothing listens there: is the server running, and the port right?"
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return "unreachable", fmt.Sprintf("%sconnecting: %v", where, op.Err)
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return "unreachable", where + "what answers there does not speak HTTP, or speaks TLS"
	case errors.Is(err, context.DeadlineExceeded):
		return "unreachable", where + "it does not answer"
	}
	return "broken", fmt.Sprintf("%sthe connection broke before there was an answer, so it is not known whether the server did what it was asked: %v", where, err)
}
