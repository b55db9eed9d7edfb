package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// File is a configuration file as it is written. A Setting that is not in it is not Given.
type File struct {
	Path string
	// Settings are the defaults for every server.
	Settings
	// Active names the active workspace: the name of a root of this file, or a directory.
	Active Setting[string]
	Log    Log
	// Rules are in the order of the file.
	Rules []*Rule
	// Servers are in the order of the file.
	Servers []*Server

	form form
	doc  *splice.Doc
}

// Settings can be given for every server, and for one.
type Settings struct {
	// Roots are the configured directories. Given and empty means that there are none.
	Roots Setting[[]Root]
	Choices
}

// Choices are the settings that a plan has as a file has them, one value each.
type Choices struct {
	ClientRoots Setting[roots.Mode]
	// ListChanged is whether servers are told that roots may change, and that they did.
	ListChanged    Setting[bool]
	OnChange       Setting[OnChange]
	Paths          Setting[launch.Paths]
	AllowBroad     Setting[bool]
	ShareRoots     Setting[bool]
	StrictProtocol Setting[bool]
	// Confine is whether the kernel holds the server to its roots. The others say what it may reach besides.
	Confine    Setting[bool]
	Net        Setting[Net]
	AllowRead  Setting[[]string]
	AllowWrite Setting[[]string]
	AllowRun   Setting[[]string]
	AllowEnv   Setting[[]string]
	AllowUnix  Setting[bool]
	Results    Results
	// Approval is how a person is asked.
	Approval Approval
	// Ask is who asks a person, and Preset which rules are looked at last.
	Ask    Setting[policy.Mode]
	Preset Setting[string]
	// TrustAnnotations is whether it is believed what the server says of its tools, and PublishAnnotations whether the client
	// is told what is believed.
	TrustAnnotations, PublishAnnotations Setting[bool]
	// Pins is where it is kept what the server says of itself: PinsOn, PinsOff, or a file, absolute.
	Pins Setting[string]
	// ServerProtocol and ClientProtocol are one of ProtocolWords.
	ServerProtocol, ClientProtocol Setting[string]
	// RemoteRoots are directories of the server's machine, absolute there.
	RemoteRoots Setting[[]string]
	// ForwardAuthorization is whether a server on another machine gets the Authorization of our own clients.
	ForwardAuthorization Setting[bool]
}

// Server is one server of a file.
type Server struct {
	Name string
	Settings
	Command Setting[string]
	Args    Setting[[]string]
	Env     Setting[map[string]string]
	Cwd     Setting[string]
	Remote
	// Tools are the exceptions for arguments of tools and prompts, by name; "*" is all of them.
	Tools map[string]Tool

	origin Origin
}

// Root is a configured directory as it is written.
type Root struct {
	// Path is the directory, or a file. A relative one starts at the directory of the file.
	Path string
	Name string
	// Access is ReadWrite unless it says otherwise.
	Access roots.Access
	Pin    bool
	Origin Origin
}

// Tool says which arguments of a tool are paths, and what is filled in for missing ones.
type Tool struct {
	Paths    Setting[[]string]
	NotPaths Setting[[]string]
	// Defaults may hold placeholders.
	Defaults Setting[map[string]string]
	// Effect is what it does at most.
	Effect Setting[policy.Effect]
}

// Log says where the log goes and what is in it.
type Log struct {
	Enabled Setting[bool]
	// Dir is absolute.
	Dir    Setting[string]
	Bodies Setting[bool]
	Sync   Setting[bool]
	// KeepDays and MaxMB are how much is kept, in days and MiB.
	KeepDays Setting[int]
	MaxMB    Setting[int]
}

// OnChange says what happens to a server that only knows its arguments when the roots change.
type OnChange uint8

const (
	// Auto starts it again when a root was added that it was not started with.
	Auto OnChange = iota
	// Restart starts it again also when roots were taken away.
	Restart
	// Notify never does.
	Notify
)

// String returns the word as it is written in a file.
func (o OnChange) String() string { return word(onChangeWords, o) }

// form tells the forms of a file apart.
type form uint8

const (
	ours     form = iota
	client        // JSON with mcpServers, TOML with [[mcp.servers]]
	fragment      // roots and capabilities alone
)

// Load reads a file. Path is absolute.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading configuration %q: %w", path, reason(err))
	}
	return Parse(path, text)
}

// reason takes the path out of an error that is told with the path.
func reason(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Parse reads the text of a file. Path is absolute; it is for errors, for the grammar (TOML unless it ends in .json or .jsonc, or the
// text begins with a brace), and to find what is written relative to it. The error holds every fault: each is an *Error.
func Parse(path string, text []byte) (*File, error) {
	d, err := newDecoder(path, text)
	if err != nil {
		return nil, err
	}
	f, root := d.file, d.file.doc.Root()
	if d.want(root, splice.ObjectKind) {
		switch f.form = formOf(f.doc); f.form {
		case ours:
			decode(d, root, fileKeys(), f)
		default:
			d.clientFile(root)
		}
		d.names()
		d.ruleFaults()
	}
	if err := errors.Join(d.faults...); err != nil {
		return nil, err
	}
	return f, nil
}

func grammar(path string, text []byte) splice.Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".jsonc":
		return splice.JSONC
	case ".toml":
		return splice.TOML
	}
	if bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff"))), []byte("{")) {
		return splice.JSONC
	}
	return splice.TOML
}

// formOf tells which form a file has. Roots alone are a fragment when all are told by their URI and the file is JSON.
func formOf(doc *splice.Doc) form {
	root := doc.Root()
	if _, ok := root.Get("mcpServers"); ok && doc.Format() != splice.TOML {
		return client
	}
	if v, ok := doc.Find(splice.Path{"mcp", "servers"}); ok && v.Kind == splice.ArrayKind {
		return client
	}
	for _, m := range root.Members {
		if m.Name != "roots" && m.Name != "capabilities" {
			return ours
		}
	}
	if _, ok := root.Get("capabilities"); ok {
		return fragment
	}
	list, _ := root.Get("roots")
	if doc.Format() == splice.TOML || list == nil || len(list.Items) == 0 {
		return ours
	}
	for _, item := range list.Items {
		if _, ok := item.Get("uri"); !ok {
			return ours
		}
	}
	return fragment
}

// Server returns the server with that name.
func (f *File) Server(name string) (*Server, bool) {
	for _, s := range f.Servers {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// allRoots are the roots of every list of the file.
func (f *File) allRoots() []Root {
	list := slices.Clone(f.Roots.Value)
	for _, s := range f.Servers {
		list = append(list, s.Roots.Value...)
	}
	return list
}

// serverNames returns the names of the servers, in the order of the file.
func (f *File) serverNames() []string {
	var names []string
	for _, s := range f.Servers {
		names = append(names, s.Name)
	}
	return names
}

// of returns what the file says for a server: its own settings before the defaults.
func (f *File) of(s *Server) Settings {
	d := f.Settings
	if s == nil {
		return d
	}
	o := s.Settings
	return Settings{
		Roots: first(o.Roots, d.Roots),
		Choices: Choices{
			ClientRoots:    first(o.ClientRoots, d.ClientRoots),
			ListChanged:    first(o.ListChanged, d.ListChanged),
			OnChange:       first(o.OnChange, d.OnChange),
			Paths:          first(o.Paths, d.Paths),
			AllowBroad:     first(o.AllowBroad, d.AllowBroad),
			ShareRoots:     first(o.ShareRoots, d.ShareRoots),
			StrictProtocol: first(o.StrictProtocol, d.StrictProtocol),
			Confine:        first(o.Confine, d.Confine),
			Net:            first(o.Net, d.Net),
			AllowRead:      first(o.AllowRead, d.AllowRead),
			AllowWrite:     first(o.AllowWrite, d.AllowWrite),
			AllowRun:       first(o.AllowRun, d.AllowRun),
			AllowEnv:       first(o.AllowEnv, d.AllowEnv),
			AllowUnix:      first(o.AllowUnix, d.AllowUnix),
			Results:        o.Results.before(d.Results),
			Approval:       o.Approval.before(d.Approval),
			Ask:            first(o.Ask, d.Ask),
			Preset:         first(o.Preset, d.Preset),
			Pins:           first(o.Pins, d.Pins),

			ServerProtocol:       first(o.ServerProtocol, d.ServerProtocol),
			ClientProtocol:       first(o.ClientProtocol, d.ClientProtocol),
			RemoteRoots:          first(o.RemoteRoots, d.RemoteRoots),
			ForwardAuthorization: first(o.ForwardAuthorization, d.ForwardAuthorization),

			TrustAnnotations:   first(o.TrustAnnotations, d.TrustAnnotations),
			PublishAnnotations: first(o.PublishAnnotations, d.PublishAnnotations),
		},
	}
}

// first returns the first setting that is given.
func first[T any](list ...Setting[T]) Setting[T] {
	for _, s := range list {
		if s.Given() {
			return s
		}
	}
	return Setting[T]{}
}
