package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/pin"
)

// Options of a page.
type Options struct {
	// Dir is the directory in which guards say where they can be reached.
	Dir string
	// Version is that of the program.
	Version string
	// File returns the configuration file that is shown and edited, which need not be there.
	File func() (string, error)
	// Consents, Grants and Pins are where it is kept what servers were let have, what was allowed and what they say of themselves.
	Consents consent.File
	Grants   approval.Store
	Pins     pin.Store
	// Told says which servers were told of which directories.
	Told func() ([]guard.Told, error)
	// LogDir is the directory of the log, and LogIndex where its index is.
	LogDir, LogIndex string
	// Configured lists the servers that can be tried; Verify tries one, until ctx ends.
	Configured func() []Configured
	Verify     func(ctx context.Context, t Trial) (*Tried, error)
	// Report, if set, is told what the person in the terminal should know.
	Report func(format string, args ...any)
}

// UI is the local page. It is safe for concurrent use.
type UI struct {
	o   Options
	mux *http.ServeMux
	hub *hub
	few few

	desks   desks
	works   works
	history history
	trials  trials

	pausing sync.Mutex // held while it is found out and told what is paused

	mu      sync.Mutex
	host    string // by which browsers must call us; "" until it is served
	token   string // of the link that is good; "" when it was used
	session string // the cookie, and key what goes with it; "" until a link was used
	key     string
	tickets map[string]ticket
}

// section is a section of the page, apart from its modules.
type section struct {
	name string
	// routes registers what it is asked.
	routes func(*UI)
	// run, if set, does what it does beside that, until ctx ends.
	run func(context.Context, *UI)
}

// sections are all of them, in the order of the navigation.
var sections = []section{guardsSection, rootsSection, grantsSection, logSection, verifySection}

const (
	// maxBody is the longest request, in bytes: arguments of a call that were edited.
	maxBody = 2 << 20
	// maxConns is how many connections there are at once.
	maxConns = 128
	// patience is how long one request, or one event, may take to be read and answered.
	patience = 30 * time.Second
)

// New returns a page that nobody can open yet.
func New(o Options) *UI {
	if o.Report == nil {
		o.Report = func(string, ...any) {}
	}
	if o.File == nil {
		o.File = func() (string, error) { return "", errors.New("there is no configuration file to show") }
	}
	u := &UI{o: o, mux: http.NewServeMux(), hub: newHub(), few: few{report: o.Report}, desks: desks{guards: map[string]*desk{}}, tickets: map[string]ticket{}}
	u.mux.HandleFunc("GET /{$}", serveIndex)
	u.mux.HandleFunc("GET /web/", serveModule)
	u.mux.HandleFunc("POST /api/open", u.open)
	u.mux.Handle("GET /api/events", u.private(http.HandlerFunc(u.events)))
	u.handle("POST /api/ticket", u.newTicket)
	for _, s := range sections {
		s.routes(u)
	}
	return u
}

// ErrAddress is why an address is not listened at: it does not say that it is this machine alone.
var ErrAddress = errors.New("the page is for this machine alone, so its address must be 127.0.0.1 or [::1], and a port")

// Listen listens at an address, which is one of this machine's own, and a port.
func Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return nil, fmt.Errorf("listening on %q: %w", address, ErrAddress)
	}
	// A name could be another machine's, and no host at all is every one of ours.
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() || ip.Zone() != "" {
		return nil, fmt.Errorf("listening on %q: %w", address, ErrAddress)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w", address, err)
	}
	return l, nil
}

// secret returns a word that cannot be guessed.
func secret() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// same compares a secret.
func same(got, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// Link returns a link to the page at an address, which is good for one browser. The link before it is good no more, and the
// browser that used one is let in no longer when this one is used.
func (u *UI) Link(at net.Addr) string {
	token := secret()
	u.mu.Lock()
	u.token = token
	u.mu.Unlock()
	// What is behind # is not sent to anybody. An address that was never asked for is none that the browser has kept from who was at
	// this port before.
	return "http://" + at.String() + "/?" + secret()[:8] + "#open=" + token
}

// Serve serves the page until ctx ends. It closes l.
func (u *UI) Serve(ctx context.Context, l net.Listener) error {
	u.mu.Lock()
	u.host = l.Addr().String()
	u.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	for _, s := range sections {
		if s.run != nil {
			running.Go(func() { s.run(ctx, u) })
		}
	}
	srv := &http.Server{
		Handler: u.Handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(complaints{&u.few}, "", 0),
	}
	ended := make(chan struct{})
	go func() {
		<-ctx.Done()
		// Streams end with the context; whatever else there is has a moment.
		last, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if srv.Shutdown(last) != nil {
			srv.Close()
		}
		close(ended)
	}()
	err := srv.Serve(&ownListener{Listener: netutil.LimitListener(l, maxConns), few: &u.few})
	stop()
	<-ended
	running.Wait()
	u.few.end()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the page: %w", err)
}
