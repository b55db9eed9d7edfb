package config

import (
	"path/filepath"
	"sync"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// key is one key of a table: for the decoder, for the JSON Schema, and for the check that it is documented.
type key[T any] struct {
	name string
	// doc is one sentence for the schema.
	doc string
	// operator is set for keys that a project's file may not give, because they do more than narrow.
	operator bool
	schema   schema
	read     func(d *decoder, v *splice.Value, to *T)
}

// schema makes a part of a JSON Schema. It is made when it is asked for: each start of the program would wait for it.
type schema func() part

// part is a part of a JSON Schema.
type part map[string]any

func aString() part    { return part{"type": "string"} }
func aURI() part       { return part{"type": "string", "format": "uri"} }
func aBool() part      { return part{"type": "boolean"} }
func aNumber() part    { return part{"type": "integer", "minimum": 1} }
func stringList() part { return part{"type": "array", "items": aString()} }
func stringMap() part  { return part{"type": "object", "additionalProperties": aString()} }
func onlyTrue() part   { return part{"const": true} }

func arrayOf(s schema) schema { return func() part { return part{"type": "array", "items": s()} } }
func mapOf(s schema) schema {
	return func() part { return part{"type": "object", "additionalProperties": s()} }
}

// words are the values of a setting that has a few.
type words[T comparable] []struct {
	word  string
	value T
}

var (
	clientRootsWords = words[roots.Mode]{{"narrow", roots.Narrow}, {"ignore", roots.Ignore}, {"accept", roots.Accept}}
	onChangeWords    = words[OnChange]{{"auto", Auto}, {"restart", Restart}, {"notify", Notify}}
	pathsWords       = words[launch.Paths]{{"local", launch.Local}, {"elsewhere", launch.Elsewhere}}
	accessWords      = words[roots.Access]{
		{"rw", roots.ReadWrite}, {"ro", roots.ReadOnly}, {"no-delete", roots.Read | roots.Write},
	}
)

func (w words[T]) list() []string {
	var list []string
	for _, e := range w {
		list = append(list, e.word)
	}
	return list
}

func (w words[T]) schema() part { return part{"enum": w.list()} }

// value returns what a word stands for.
func (w words[T]) value(s string) (T, bool) {
	for _, e := range w {
		if e.word == s {
			return e.value, true
		}
	}
	var zero T
	return zero, false
}

func word[T comparable](w words[T], v T) string {
	for _, e := range w {
		if e.value == v {
			return e.word
		}
	}
	return ""
}

func fileKeys() []key[File]     { f, _ := tables(); return f }
func serverKeys() []key[Server] { _, s := tables(); return s }

// tables makes the keys of the two tables that have the settings in them.
var tables = sync.OnceValues(func() ([]key[File], []key[Server]) {
	file := append([]key[File]{
		{"$schema", "The schema of the file, for editors. It means nothing here.", false, aString,
			func(d *decoder, v *splice.Value, _ *File) { d.text(v) }},
		{"active", "The active workspace, for --root @active: the name of a root of this file, or a directory.", true, aString,
			func(d *decoder, v *splice.Value, f *File) { f.Active = d.text(v) }},
		{"log", "Where the log goes and what is in it.", true, object(logKeys),
			func(d *decoder, v *splice.Value, f *File) { decode(d, v, logKeys, &f.Log) }},
		{"rule", "What becomes of which calls.", false, arrayOf(ruleSchema),
			func(d *decoder, v *splice.Value, f *File) { f.Rules = d.rules(v) }},
	}, lift(settingKeys, func(f *File) *Settings { return &f.Settings })...)
	server := append([]key[Server]{
		{"command", "The program that is the server.", true, aString,
			func(d *decoder, v *splice.Value, s *Server) { s.Command = d.text(v) }},
		{"args", "Its arguments. {roots}, {root} and {root:NAME} are filled in.", true, stringList,
			func(d *decoder, v *splice.Value, s *Server) { s.Args = d.texts(v) }},
		{"env", "Environment variables that it gets besides the inherited ones.", true, stringMap,
			func(d *decoder, v *splice.Value, s *Server) { s.Env = d.textMap(v) }},
		{"cwd", "The directory it starts in.", true, aString,
			func(d *decoder, v *splice.Value, s *Server) { s.Cwd = d.text(v) }},
		{"url", "Where the server is, if it is not started: https://… or http://….", true, aURI,
			func(d *decoder, v *splice.Value, s *Server) { s.URL = d.url(v) }},
		{"headers", "Headers for a server with a URL. ${env:NAME} and ${file:PATH} in a value are filled in.", true, stringMap,
			func(d *decoder, v *splice.Value, s *Server) { s.Headers = d.headers(v) }},
		{"tool", "Exceptions for the arguments of its tools and prompts, by name; \"*\" is all of them.", false,
			mapOf(object(toolKeys)),
			func(d *decoder, v *splice.Value, s *Server) {
				if d.want(v, splice.ObjectKind) {
					s.Tools = map[string]Tool{}
					for _, m := range v.Members {
						var t Tool
						decode(d, m.Value, toolKeys, &t)
						s.Tools[m.Name] = t
					}
				}
			}},
	}, lift(settingKeys, func(s *Server) *Settings { return &s.Settings })...)
	file = append(file, key[File]{"server", "The servers, by name.", false,
		mapOf(object(server)),
		func(d *decoder, v *splice.Value, f *File) {
			if d.want(v, splice.ObjectKind) {
				for _, m := range v.Members {
					s := &Server{Name: m.Name, origin: d.at(m.Pos)}
					decode(d, m.Value, server, s)
					d.oneWay(s, m.Pos)
					f.Servers = append(f.Servers, s)
				}
			}
		}})
	return file, server
})

var settingKeys = []key[Settings]{
	{"roots", "The directories the server is held to.", false, arrayOf(rootSchema),
		func(d *decoder, v *splice.Value, s *Settings) { s.Roots = d.roots(v) }},
	{"client_roots", "What the client's own list of roots counts for.", false, clientRootsWords.schema,
		func(d *decoder, v *splice.Value, s *Settings) { s.ClientRoots = enum(d, v, clientRootsWords) }},
	{"list_changed", "Whether the server is told that roots may change, and that they did.", false, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.ListChanged = d.bool(v) }},
	{"on_change", "What happens to a server that only knows its arguments when the roots change.", false, onChangeWords.schema,
		func(d *decoder, v *splice.Value, s *Settings) { s.OnChange = enum(d, v, onChangeWords) }},
	{"paths", "What the paths in its calls are: of this disk, or of somewhere else.", false, pathsWords.schema,
		func(d *decoder, v *splice.Value, s *Settings) { s.Paths = enum(d, v, pathsWords) }},
	{"allow_broad", "Whether a root may be a home directory or the top of a disk.", true, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.AllowBroad = d.bool(v) }},
	{"share_roots", "Whether a server on another machine may be told the roots.", false, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.ShareRoots = d.bool(v) }},
	{"remote_roots", "Directories of the machine of a server with a URL, to which the paths in its calls are held by their text.", true, stringList,
		func(d *decoder, v *splice.Value, s *Settings) { s.RemoteRoots = d.remotePaths(v) }},
	{"forward_authorization", "Whether a server with a URL gets the Authorization that clients of ours send.", true, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.ForwardAuthorization = d.bool(v) }},
	{"server_protocol", "Which revisions are spoken with the server: auto, those of one era, or one.", true, protocolSchema,
		func(d *decoder, v *splice.Value, s *Settings) { s.ServerProtocol = d.protocol(v) }},
	{"client_protocol", "Which revisions are spoken with the client: auto, those of one era, or one.", true, protocolSchema,
		func(d *decoder, v *splice.Value, s *Settings) { s.ClientProtocol = d.protocol(v) }},
	{"strict_protocol", "Whether what the protocol does not allow is refused where it is usually borne.", false, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.StrictProtocol = d.bool(v) }},
	{"confine", "Whether the kernel holds the server to its roots, or else it is not started.", false, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.Confine = d.bool(v) }},
	{"net", "What a confined server may reach over the network.", false, netSchema,
		func(d *decoder, v *splice.Value, s *Settings) { s.Net = d.net(v) }},
	{"allow_read", "Files and directories that a confined server may read besides its roots.", true, stringList,
		func(d *decoder, v *splice.Value, s *Settings) { s.AllowRead = d.paths(v) }},
	{"allow_write", "Files and directories that a confined server may read and write besides its roots.", true, stringList,
		func(d *decoder, v *splice.Value, s *Settings) { s.AllowWrite = d.paths(v) }},
	{"allow_run", "Programs that a confined server may run.", true, stringList,
		func(d *decoder, v *splice.Value, s *Settings) { s.AllowRun = d.programs(v) }},
	{"allow_env", "Environment variables that a confined server gets, besides those that say how to behave.", true, stringList,
		func(d *decoder, v *splice.Value, s *Settings) { s.AllowEnv = d.texts(v) }},
	{"allow_unix", "Whether a confined server may use Unix sockets.", true, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.AllowUnix = d.bool(v) }},
	{"results", "What is done about what is found in the answers of the server.", false, resultsSchema,
		func(d *decoder, v *splice.Value, s *Settings) { decode(d, v, resultsKeys(), &s.Results) }},
	{"approval", "How a person is asked.", false, object(approvalKeys),
		func(d *decoder, v *splice.Value, s *Settings) { decode(d, v, approvalKeys, &s.Approval) }},
	{"ask", "Who asks a person: auto, client, always; or deny, where nobody does.", false, askWords.schema,
		func(d *decoder, v *splice.Value, s *Settings) { s.Ask = enum(d, v, askWords) }},
	{"preset", "Which rules are looked at last: readonly, cautious, standard, or boundary.", false, presetSchema,
		func(d *decoder, v *splice.Value, s *Settings) { s.Preset = enum(d, v, presetWords()) }},
	{"trust_annotations", "Whether it is believed what the server says that its tools do.", true, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.TrustAnnotations = d.bool(v) }},
	{"publish_annotations", "Whether the client is told what is believed of tools, in the place of what the server says.", false, aBool,
		func(d *decoder, v *splice.Value, s *Settings) { s.PublishAnnotations = d.bool(v) }},
	{"pins", "Where it is kept what the server says of itself: on, off, or a file.", true, aString,
		func(d *decoder, v *splice.Value, s *Settings) {
			s.Pins = d.text(v)
			s.Pins.Value = pinsValue(filepath.Dir(d.file.Path), s.Pins.Value)
			if s.Pins.Given() && s.Pins.Value == "" {
				d.fault(v.Pos, "this has to be on, off or a file")
			}
		}},
}

var rootKeys = []key[Root]{
	{"path", "The directory, or a file. A relative path starts at this file's directory, ~/ at the home directory.", false, aString,
		func(d *decoder, v *splice.Value, r *Root) { r.Path = d.text(v).Value }},
	{"uri", "The same as a file URI.", false, aURI,
		func(d *decoder, v *splice.Value, r *Root) { r.Path = d.uri(v) }},
	{"name", "A name, for people and for {root:NAME}.", false, aString,
		func(d *decoder, v *splice.Value, r *Root) { r.Name = d.text(v).Value }},
	{"access", "What may be done in it: rw (the default), ro, or no-delete.", false, accessWords.schema,
		func(d *decoder, v *splice.Value, r *Root) { r.Access = enum(d, v, accessWords).Value }},
	{"pin", "Whether it stays when the client's list leaves it out.", false, aBool,
		func(d *decoder, v *splice.Value, r *Root) { r.Pin = d.bool(v).Value }},
}

var toolKeys = []key[Tool]{
	{"paths", "Arguments that are paths, whatever they are called.", false, stringList,
		func(d *decoder, v *splice.Value, t *Tool) { t.Paths = d.texts(v) }},
	{"not_paths", "Arguments that are no paths, whatever they are called.", true, stringList,
		func(d *decoder, v *splice.Value, t *Tool) { t.NotPaths = d.texts(v) }},
	{"defaults", "What is filled in for missing arguments.", true, stringMap,
		func(d *decoder, v *splice.Value, t *Tool) { t.Defaults = d.textMap(v) }},
	{"effect", "What it does at most: read, write, or delete.", true, knownEffects.schema,
		func(d *decoder, v *splice.Value, t *Tool) { t.Effect = enum(d, v, knownEffects) }},
}

var logKeys = []key[Log]{
	{"enabled", "Whether there is a log.", true, aBool,
		func(d *decoder, v *splice.Value, l *Log) { l.Enabled = d.bool(v) }},
	{"dir", "The directory of the log.", true, aString,
		func(d *decoder, v *splice.Value, l *Log) {
			if l.Dir = d.text(v); l.Dir.Value != "" {
				l.Dir.Value = absolute(filepath.Dir(d.file.Path), l.Dir.Value)
			}
		}},
	{"bodies", "Whether texts are written out instead of their sizes.", true, aBool,
		func(d *decoder, v *splice.Value, l *Log) { l.Bodies = d.bool(v) }},
	{"sync", "Whether each record is on the disk before its call goes on.", true, aBool,
		func(d *decoder, v *splice.Value, l *Log) { l.Sync = d.bool(v) }},
	{"keep_days", "How many days a log is kept.", true, aNumber,
		func(d *decoder, v *splice.Value, l *Log) { l.KeepDays = d.number(v) }},
	{"max_mb", "How many MiB of logs are kept.", true, aNumber,
		func(d *decoder, v *splice.Value, l *Log) { l.MaxMB = d.number(v) }},
}

// lift makes keys of a part keys of the whole.
func lift[T, U any](keys []key[U], part func(*T) *U) []key[T] {
	var list []key[T]
	for _, k := range keys {
		list = append(list, key[T]{k.name, k.doc, k.operator, k.schema,
			func(d *decoder, v *splice.Value, to *T) { k.read(d, v, part(to)) }})
	}
	return list
}
