package approval

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/statefile"
	"github.com/rootbound/rootbound/internal/unseen"
)

// Grant is a yes that is good for more calls than the one it was said to. What is not empty must all be as it says. The zero
// value allows nothing.
type Grant struct {
	// ID names it, for people.
	ID string `json:"id"`
	// Server and Runs are whose calls it is for: the server's name, and what runs.
	Server string `json:"server"`
	Runs   string `json:"runs"`
	// Client is the client's name.
	Client string `json:"client"`
	// Session is the one that it is for.
	Session string `json:"session,omitempty"`
	// Definition is what the server said of the tool, or where it is for every tool, of all of them.
	Definition string `json:"definition,omitempty"`
	// Tool is the tool; empty for every tool that is asked for in Root in Session. Rule is the rule that asked.
	Tool string `json:"tool,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Digest is that of the one call that it is for.
	Digest string `json:"digest,omitempty"`
	// Root is the root in which everything that is touched must be; Under the directory beneath which all paths must be;
	// Host the only host.
	Root  string `json:"root,omitempty"`
	Under string `json:"under,omitempty"`
	Host  string `json:"host,omitempty"`
	// Since and Until are from when and until when it is good.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Call is the one that a person said yes to, and By who that was.
	Call string `json:"call,omitempty"`
	By   string `json:"by,omitempty"`
}

// String says what it allows.
func (g Grant) String() string {
	what := "every tool that the same rule asks for"
	if g.Tool != "" {
		what = Line(g.Tool, 80)
	}
	switch {
	case g.Digest != "":
		what += " with the same arguments (" + g.Digest[:min(len(g.Digest), 12)] + ")"
	case g.Under != "":
		what += " under " + unseen.Visible(g.Under)
	case g.Host != "":
		what += " to " + unseen.Visible(g.Host)
	case g.Root != "":
		what += " in " + unseen.Visible(g.Root)
	}
	return what
}

// Use is a call for which a grant is looked for.
type Use struct {
	Server, Runs, Client, Session string
	// Definition is that of the tool, All that of all tools.
	Definition, All string
	Tool, Rule      string
	Digest          string
	// Roots are those in which something is touched, Targets where all paths lead, and Hosts where all URLs do.
	Roots, Targets, Hosts []string
}

// allows reports whether a grant is for a call, apart from its time.
func (g *Grant) allows(u *Use) bool {
	definition := u.Definition
	if g.Tool == "" {
		definition = u.All
	}
	switch {
	case g.ID == "", g.Server != u.Server, g.Runs != u.Runs, g.Client != u.Client, g.Definition != definition:
		return false
	case g.Session != "" && g.Session != u.Session, g.Tool != "" && g.Tool != u.Tool, g.Rule != "" && g.Rule != u.Rule:
		return false
	case g.Digest != "" && g.Digest != u.Digest:
		return false
	case g.Root != "" && (len(u.Roots) == 0 || slices.ContainsFunc(u.Roots, func(r string) bool { return r != g.Root })):
		return false
	case g.Under != "" && (len(u.Targets) == 0 || slices.ContainsFunc(u.Targets, func(t string) bool { return !beneath(t, g.Under) })):
		return false
	case g.Host != "" && (len(u.Hosts) == 0 || slices.ContainsFunc(u.Hosts, func(h string) bool { return h != g.Host })):
		return false
	case g.Under != "" && len(u.Hosts) > 0, g.Host != "" && len(u.Targets) > 0:
		return false // it reaches further than what was granted
	case g.Tool == "" && (g.Session == "" || g.Root == "" || g.Rule == ""):
		return false // it says too little to be one
	}
	return true
}

// holds reports whether its time is now. A grant that is from later than now is of a clock that was set.
func (g *Grant) holds(now time.Time) bool {
	return !now.Before(g.Since.Add(-time.Minute)) && now.Before(g.Until)
}

// Store is the file of grants. It need not be there. It is safe for concurrent use, also by several processes.
type Store struct {
	Path string
	// Lock is the file that whoever changes it holds locked.
	Lock string
}

type grantFile struct {
	Grants []Grant `json:"grants"`
}

// Grants returns what is in the file, also what has ended.
func (s Store) Grants() ([]Grant, error) {
	info, err := os.Stat(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading grants: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("reading grants: %q is no ordinary file: remove it", s.Path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("reading grants: %q may be written by others: make it yours alone with chmod 600", s.Path)
	}
	text, err := os.ReadFile(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // taken away meanwhile
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading grants: %w", err)
	}
	var f grantFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("reading grants: %s: %w: mend the file or remove it; until then nothing is granted", s.Path, err)
	}
	for _, g := range f.Grants {
		if g.ID == "" || g.Server == "" || g.Until.IsZero() {
			return nil, fmt.Errorf("reading grants: %s: one of them names no server, or no end: mend the file or remove it; until then nothing is granted", s.Path)
		}
	}
	return f.Grants, nil
}

// edit changes the file, alone among all who do. What has ended is left out.
func (s Store) edit(f func([]Grant) []Grant) error {
	err := statefile.Locked(s.Lock, func() error {
		all, err := s.Grants()
		if err != nil {
			return err
		}
		now := time.Now()
		all = slices.DeleteFunc(f(all), func(g Grant) bool { return !now.Before(g.Until) })
		sort.Slice(all, func(i, j int) bool {
			a, b := &all[i], &all[j]
			return cmp.Or(strings.Compare(a.Server, b.Server), a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID)) < 0
		})
		text, err := json.MarshalIndent(grantFile{all}, "", "  ")
		if err != nil {
			return err
		}
		return statefile.Replace(s.Path, append(text, '\n'))
	})
	if err != nil {
		return fmt.Errorf("writing grants: %w", err)
	}
	return nil
}

// maxGrants is how many grants are kept; the oldest goes for a new one.
const maxGrants = 20_000

// Add keeps a grant, and returns it with its id.
func (s Store) Add(g Grant) (Grant, error) {
	b := make([]byte, 4)
	rand.Read(b)
	g.ID = "g" + hex.EncodeToString(b)
	if g.Since.IsZero() || g.Server == "" || !g.Until.After(g.Since) {
		return Grant{}, fmt.Errorf("bug: the grant %+v has no time or no server", g)
	}
	err := s.edit(func(all []Grant) []Grant {
		all = append(all, g)
		if len(all) > maxGrants {
			sort.Slice(all, func(i, j int) bool { return all[i].Since.Before(all[j].Since) })
			all = all[len(all)-maxGrants:]
		}
		return all
	})
	return g, err
}

// Revoke takes back the grants for which match is true, and returns them.
func (s Store) Revoke(match func(Grant) bool) ([]Grant, error) {
	var gone []Grant
	if all, err := s.Grants(); err != nil || !slices.ContainsFunc(all, match) {
		return nil, err
	}
	err := s.edit(func(all []Grant) []Grant {
		return slices.DeleteFunc(all, func(g Grant) bool {
			if match(g) {
				gone = append(gone, g)
				return true
			}
			return false
		})
	})
	return gone, err
}

// End takes back what was granted for the sessions of a run, which has ended.
func (s Store) End(run string) error {
	_, err := s.Revoke(func(g Grant) bool { return strings.HasPrefix(g.Session, run+":") })
	return err
}

// Clear takes back everything, also where the file cannot be read.
func (s Store) Clear() error {
	err := statefile.Locked(s.Lock, func() error {
		if err := os.Remove(s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("clearing grants: %w", err)
	}
	return nil
}

// Grants is what a guard knows of a store. It is held in memory, and read again when the file changed. It is safe for
// concurrent use.
type Grants struct {
	store Store

	mu     sync.Mutex
	begun  bool
	stamp  statefile.Stamp
	err    error
	latest time.Time // that the clock has shown
	by     map[string][]*Grant
}

// NewGrants returns a view of what store has.
func NewGrants(s Store) *Grants { return &Grants{store: s} }

// Store returns the store.
func (g *Grants) Store() Store { return g.store }

// index are the words by which a grant is found: by the most that it says.
func (g *Grant) index() string {
	key := g.Server + "\x00"
	switch {
	case g.Digest != "":
		return key + "digest\x00" + g.Digest
	case g.Under != "":
		return key + "under\x00" + g.Under
	case g.Host != "":
		return key + "host\x00" + g.Host
	case g.Root != "":
		return key + "root\x00" + g.Root + "\x00" + g.Session
	}
	return key + "tool\x00" + g.Tool + "\x00" + g.Session
}

// words are those by which the grants for a call are found.
func (u *Use) words() []string {
	key := u.Server + "\x00"
	list := []string{key + "digest\x00" + u.Digest, key + "tool\x00" + u.Tool + "\x00" + u.Session, key + "tool\x00" + u.Tool + "\x00"}
	if len(u.Targets) > 0 {
		for dir := u.Targets[0]; ; dir = filepath.Dir(dir) {
			list = append(list, key+"under\x00"+dir)
			if filepath.Dir(dir) == dir {
				break
			}
		}
	}
	if len(u.Hosts) > 0 {
		list = append(list, key+"host\x00"+u.Hosts[0])
	}
	if len(u.Roots) > 0 {
		list = append(list, key+"root\x00"+u.Roots[0]+"\x00"+u.Session, key+"root\x00"+u.Roots[0]+"\x00")
	}
	return list
}

// Find returns the grant that is for a call. An error says that they cannot be read; then nothing is granted.
func (g *Grants) Find(u Use, now time.Time) (Grant, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look()
	if g.err != nil {
		return Grant{}, false, g.err
	}
	// A clock that is set back makes no grant good again.
	if now = wall(now); now.After(g.latest) {
		g.latest = now
	}
	for _, word := range u.words() {
		for _, c := range g.by[word] {
			if c.allows(&u) && c.holds(g.latest) && c.holds(now) {
				return *c, true, nil
			}
		}
	}
	return Grant{}, false, nil
}

// look reads the file when it changed. The caller holds mu.
func (g *Grants) look() {
	now := statefile.StampOf(g.store.Path)
	if g.begun && now == g.stamp {
		return
	}
	g.begun, g.stamp = true, now
	all, err := g.store.Grants()
	g.err, g.by = err, map[string][]*Grant{}
	if g.err != nil {
		g.begun = false // it may be mended without a trace
	}
	for i := range all {
		word := all[i].index()
		g.by[word] = append(g.by[word], &all[i])
	}
}
