package ui

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// policy is what a browser may do with our page: what is ours, as files, and nothing that is written into the document.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler returns what answers requests, with all that is checked before.
func (u *UI) Handler() http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, problem{http.StatusForbidden, "origin", "this request is not from this page"})
	}))
	inner := origin.Handler(u.mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), usb=(), payment=()")
		h.Set("Cache-Control", "no-store")
		c := http.NewResponseController(w)
		if r.ContentLength != 0 { // else nothing is to come, and a time that ends while it is served would end its context
			c.SetReadDeadline(time.Now().Add(patience))
		}
		c.SetWriteDeadline(time.Now().Add(patience))
		u.mu.Lock()
		host := u.host
		u.mu.Unlock()
		// A name that was made to lead here is none of ours. Port 80 is left out by browsers.
		if host == "" || r.Host != host && r.Host+":80" != host {
			refuse(w, problem{http.StatusMisdirectedRequest, "host", "this page has another address"})
			return
		}
		// Those that only read are let through by the check above, and a document of ours may be opened from anywhere.
		if site := r.Header.Get("Sec-Fetch-Site"); strings.HasPrefix(r.URL.Path, "/api/") && site != "" && site != "same-origin" {
			refuse(w, problem{http.StatusForbidden, "origin", "this request is not from this page"})
			return
		}
		if isWorker(r) {
			serveWorker(w)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		inner.ServeHTTP(w, r)
	})
}

// cookieName is where the session of a page at a host is. A cookie goes to every port, so two pages would take it from each other.
func cookieName(host string) string { return "rootbound-" + host[strings.LastIndexByte(host, ':')+1:] }

// keyHeader is where the page shows what it keeps for its origin.
const keyHeader = "Rootbound-Key"

// open exchanges the token of a link, once, for a session.
func (u *UI) open(w http.ResponseWriter, r *http.Request) {
	var in struct{ Token string }
	if err := read(r, &in); err != nil {
		refuse(w, err)
		return
	}
	u.mu.Lock()
	if !same(in.Token, u.token) {
		u.mu.Unlock()
		u.few.tell("link", "somebody came with a link that was used already, or is none of ours")
		refuse(w, problem{http.StatusForbidden, "link", "this link was used already, or is of another run"})
		return
	}
	u.token, u.session, u.key = "", secret(), secret()
	session, key := u.session, u.key
	clear(u.tickets)
	u.mu.Unlock()
	u.hub.part() // whoever was let in before
	u.o.Report("the page is open in a browser")
	http.SetCookie(w, &http.Cookie{Name: cookieName(r.Host), Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	answer(w, map[string]string{"key": key})
}

// ticket lets a browser fetch one thing by itself, without the key.
type ticket struct {
	target string // the path with its query
	until  time.Time
}

const maxTickets = 64

func (u *UI) newTicket(r *http.Request) (any, error) {
	var in struct{ Path string }
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(in.Path, "/api/") || strings.ContainsAny(in.Path, "#") {
		return nil, problem{http.StatusBadRequest, "request", "a link must be to something of ours"}
	}
	name := secret()
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	for k, t := range u.tickets {
		if now.After(t.until) {
			delete(u.tickets, k)
		}
	}
	if len(u.tickets) >= maxTickets {
		return nil, problem{http.StatusTooManyRequests, "busy", "too many links were made that nobody used"}
	}
	u.tickets[name] = ticket{in.Path, now.Add(time.Minute)}
	sep := "?"
	if strings.Contains(in.Path, "?") {
		sep = "&"
	}
	return map[string]string{"href": in.Path + sep + "ticket=" + name}, nil
}

// errSession is why somebody is not let in.
var errSession = problem{http.StatusUnauthorized, "session", "open the link that `rootbound ui` prints"}

// knows reports whether a request has the session. The caller holds mu.
func (u *UI) knows(r *http.Request) bool {
	// Another port can set a cookie of the same name, for a longer path, which then comes first.
	return slices.ContainsFunc(r.CookiesNamed(cookieName(r.Host)), func(c *http.Cookie) bool { return same(c.Value, u.session) })
}

// private lets in who has the session and its key, or instead of the key a ticket.
func (u *UI) private(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		ok := u.knows(r)
		if ok && !same(r.Header.Get(keyHeader), u.key) {
			ok = r.Method == http.MethodGet && u.admits(r)
		}
		u.mu.Unlock()
		if !ok {
			refuse(w, errSession)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admits uses up the ticket of a request. The caller holds mu.
func (u *UI) admits(r *http.Request) bool {
	name := r.URL.Query().Get("ticket")
	t, ok := u.tickets[name]
	if !ok {
		return false
	}
	delete(u.tickets, name)
	target, _ := strings.CutSuffix(r.URL.RequestURI(), "ticket="+name)
	return len(target) > 0 && target[:len(target)-1] == t.target && time.Now().Before(t.until)
}

// problem is an error that the page has words for, by its code.
type problem struct {
	status int
	code   string
	text   string
}

func (p problem) Error() string { return p.text }

// handle registers what answers a request of the page with a value, as JSON.
func (u *UI) handle(pattern string, f func(*http.Request) (any, error)) {
	u.handleSlow(pattern, patience, f)
}

// handleSlow is handle for what may take a while.
func (u *UI) handleSlow(pattern string, most time.Duration, f func(*http.Request) (any, error)) {
	u.mux.Handle(pattern, u.private(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(most))
		v, err := f(r)
		if err != nil {
			refuse(w, err)
			return
		}
		answer(w, v)
	})))
}

// read reads the JSON of a request.
func read(r *http.Request, into any) error {
	if ct, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); ct != "application/json" {
		return problem{http.StatusUnsupportedMediaType, "request", "a request must be JSON"}
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return problem{http.StatusRequestEntityTooLarge, "long", "this is too long"}
	case err != nil:
		return problem{http.StatusBadRequest, "request", "reading the request: " + err.Error()}
	}
	return nil
}

func answer(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(text, '\n'))
}

// refuse answers with an error. One that is no problem is ours, or a guard's, and is shown as it is.
func refuse(w http.ResponseWriter, err error) {
	p := problem{http.StatusInternalServerError, "", err.Error()}
	errors.As(err, &p)
	text, _ := json.Marshal(map[string]string{"code": p.code, "text": p.text})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	w.Write(append(text, '\n'))
}
