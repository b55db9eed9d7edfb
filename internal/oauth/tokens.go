package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Tokens has the token for one server. It is safe for concurrent use, and several processes may have the same login: one
// refreshes it for all.
type Tokens struct {
	store  Store
	server *url.URL
	how    string // the command that logs in
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	entry *Entry // as it was read last; nil for none
	read  bool
}

// lastPatience is how long an answer may take for which nobody waits any more: this program may be about to end.
const lastPatience = 5 * time.Second

// Tokens returns those for a server. How is the command that logs in.
func (s Store) Tokens(server *url.URL, how string) *Tokens {
	return &Tokens{store: s, server: server, how: how, client: newClient(), now: time.Now}
}

// Token returns the token to send, "" where nobody has logged in.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.read {
		e, err := t.store.Load(t.server)
		if err != nil {
			return "", err
		}
		t.entry, t.read = e, true
	}
	if t.entry == nil {
		return "", nil
	}
	if t.entry.stale(t.now()) && t.entry.Refresh != "" {
		// One that is about to end is good until then.
		if err := t.renew(ctx, t.entry.Access); err != nil && (t.entry == nil || !t.now().Before(t.entry.Expiry)) {
			return "", err
		}
	}
	return t.entry.Access, nil
}

// renew replaces a token that is not taken any more, unless somebody did already. The caller holds mu.
func (t *Tokens) renew(ctx context.Context, old string) error {
	if ctx.Err() != nil { // it had to wait for others
		return context.Cause(ctx)
	}
	// There is one token for the old one: it is taken also when nobody waits for it any more.
	waits := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(waits))
	defer cancel()
	defer context.AfterFunc(waits, func() { time.AfterFunc(lastPatience, cancel) })()
	return t.store.locked(t.server, func() error {
		e, err := t.store.Load(t.server)
		if err != nil {
			return err
		}
		t.entry, t.read = e, true
		switch {
		case e == nil:
			return fmt.Errorf("the server wants to know who asks: `%s` logs in, and --header sends a token of another kind", t.how)
		case e.Access != old && !e.stale(t.now()):
			return nil
		}
		if err := e.refresh(ctx, t.client); err != nil {
			if errors.As(err, new(*over)) {
				return fmt.Errorf("the login has ended (%w): `%s` logs in again", err, t.how)
			}
			return fmt.Errorf("getting another token: %w (where that stays so, `%s` logs in again)", err, t.how)
		}
		if err := t.store.write(t.server, e); err != nil { // the old one may be of no use any more
			return fmt.Errorf("keeping a login: %w", err)
		}
		return nil
	})
}

// Refused takes it that the server refused a token, or that there was none. Without an error there is another one.
func (t *Tokens) Refused(ctx context.Context, status int, values []string, token string) error {
	if status == http.StatusForbidden {
		c := parseChallenge(values)
		switch {
		case c.scope == "":
			return fmt.Errorf("the server wants more than the login allows: `%s --scope SCOPE` asks for it", t.how)
		case !harmless(c.scope):
			return fmt.Errorf("the server wants more than the login allows, %.200q: `%s --scope SCOPE` asks for it", c.scope, t.how)
		}
		return fmt.Errorf("the server wants more than the login allows: `%s --scope \"%s\"` asks for it", t.how, c.scope)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renew(ctx, token)
}

// harmless reports whether a scope of the server may stand in a command that somebody copies: no shell reads it as more than text.
func harmless(scope string) bool {
	return !strings.ContainsFunc(scope, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(" :/._-+*", r))
	})
}
