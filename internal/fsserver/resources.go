package fsserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// The roots are resources, and everything in them is one too, by the template: a list of every file would be too long to
// make and to read.

const (
	resourceTemplates = `"resourceTemplates":[{"uriTemplate":"file://{+path}","name":"path","title":"File or directory",` +
		`"description":"A file or a directory by its absolute path, within the allowed directories. A directory is read as the URIs of what is in it, one a line."},` +
		`{"uriTemplate":"file://{+path}{?cursor}","name":"more","title":"More of a directory",` +
		`"description":"What is behind a list of a directory that was cut: its last line has the URI to read."}]`
	// noHints is for what the next moment may change.
	noHints = `"ttlMs":0,"cacheScope":"private"`

	// codeNotFound is what the handshake revisions have for a resource that is not there. The stateless one took it out.
	codeNotFound = -32002

	directoryType = "inode/directory"
	unknownType   = "application/octet-stream"
)

// listResources returns the members of the result of resources/list: the roots that may be read.
func listResources(set roots.Set) string {
	b := []byte(`"resources":[`)
	for _, d := range set.Dirs() {
		if !mayRead(d) {
			continue
		}
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		name, kind := d.Name, directoryType
		if name == "" {
			name = filepath.Base(d.Path)
		}
		if d.File {
			kind = mediaType(d.Path, unknownType)
		}
		b = wire.AppendQuote(append(b, `{"uri":`...), roots.FileURI(d.Path))
		b = wire.AppendQuote(append(b, `,"name":`...), name)
		b = append(wire.AppendQuote(append(b, `,"mimeType":`...), kind), '}')
	}
	return string(append(b, ']'))
}

// readResource answers resources/read.
func (s *Server) readResource(ctx context.Context, r *exchange.Request, t *slot) exchange.Outcome {
	c, uri, err := s.resourceCall(ctx, r, t)
	if err == nil {
		defer s.sets.done(c.openSet)
		var l lent
		defer l.giveBack()
		c.lent = &l
		var content resource
		if content, err = c.contents(uri); err == nil {
			var o exchange.Outcome
			if o, err = s.answeredResource(r, content); err == nil {
				return o
			}
		}
	}
	if ctx.Err() != nil {
		return exchange.Cancelled
	}
	return s.resourceError(r, uri, err)
}

// resourceCall begins what is done with the resource that a request names. Without an error the caller lets go of the set.
func (s *Server) resourceCall(ctx context.Context, r *exchange.Request, t *slot) (*call, string, error) {
	if err := t.refused(); err != nil {
		return nil, "", err
	}
	value, _ := wire.Get(r.Msg.Params(), "uri")
	if typeOf(value) != "string" {
		return nil, "", refuse(codeArguments, `%s needs a string "uri"`, r.Msg.Method())
	}
	c, uri := &call{Server: s, ctx: ctx, request: r, slot: t}, unquote(value)
	if !readable(r.Roots) {
		return nil, uri, denial{nothingAllowed, reasonNoRoots, ""}
	}
	var err error
	c.openSet, err = s.sets.use(r.Roots)
	return c, uri, err
}

// resourceError is the outcome of a request for a resource that failed. What is outside and what is not there are answered
// alike, so that the answer does not tell what there is outside.
func (s *Server) resourceError(r *exchange.Request, uri string, err error) exchange.Outcome {
	note(r, err, false)
	code, text, reason := wire.CodeInvalidParams, s.errorText(r, err), string(rootfs.IO)
	if e := (refusal{}); errors.As(err, &e) {
		reason = e.code
	}
	switch rootfs.Code(reason) {
	case rootfs.NotFound, rootfs.OutsideRoots:
		text, reason = "resource not found: there is none of this URI in the allowed directories", string(rootfs.NotFound)
		if r.Era == exchange.Legacy {
			code = codeNotFound
		}
	case rootfs.IO:
		code = wire.CodeInternal
	}
	data := wire.AppendQuote([]byte(`{"reason":`), reason)
	if uri != "" {
		data = wire.AppendQuote(append(data, `,"uri":`...), show(uri))
	}
	return exchange.Fail(r, code, text, append(data, '}'))
}

// resourcePath returns the path of a URI.
func (c *call) resourcePath(uri string) (string, error) {
	if !isURI(uri) {
		return "", refuse(rootfs.NotFound, "not the URI of a file: %s", show(uri))
	}
	path, err := c.expand(uri)
	if err != nil {
		return "", err
	}
	return trimSeparators(path), nil
}

// resource is what resources/read answers.
type resource struct {
	uri, kind string
	content   []byte
	blob      bool // it is no text
}

// contents reads a resource.
func (c *call) contents(uri string) (resource, error) {
	plain, last, goesOn := cutCursor(uri)
	path, err := c.resourcePath(plain)
	if err != nil {
		return resource{}, err
	}
	f, info, err := c.opened(func() (*os.File, error) { return c.fs.Open(path) })
	switch {
	case errors.Is(err, rootfs.IsDirectory):
		entries, err := c.fs.ReadDir(path)
		if err != nil {
			return resource{}, c.explain(opScandir, path, err)
		}
		return resource{uri: uri, kind: directoryType, content: []byte(listURIs(path, behind(entries, last), maxList))}, nil
	case err != nil:
		return resource{}, c.explain(opOpen, path, err)
	}
	defer f.Close()
	if goesOn {
		return resource{}, refuse(rootfs.NotDirectory, "ENOTDIR: not a directory, scandir '%s': only the list of a directory goes on", show(c.real(path)))
	}
	content, err := c.readWhole(f, info.Size())
	switch {
	case errors.Is(err, errTooLong):
		return resource{}, refuse(codeTooLarge, "EFBIG: file too large, read '%s': it has %d bytes, and one answer carries at most %d. Read a part of it with the tool read_text_file.",
			show(c.real(path)), info.Size(), maxText)
	case err != nil:
		return resource{}, c.explain(opRead, path, err)
	case utf8.Valid(content) && bytes.IndexByte(content, 0) < 0:
		return resource{uri: uri, kind: mediaType(path, "text/plain"), content: content}, nil
	}
	kind := mediaType(path, unknownType)
	if strings.HasPrefix(kind, "text/") {
		kind = unknownType // its name says text, and it is none
	}
	return resource{uri: uri, kind: kind, content: content, blob: true}, nil
}

func (c *call) readWhole(f *os.File, size int64) ([]byte, error) {
	if size > maxText {
		return nil, errTooLong
	}
	return readAll(c.ctx, f, c.lent.take(int(size)+1))
}

// answeredResource is the outcome of resources/read.
func (s *Server) answeredResource(r *exchange.Request, c resource) (exchange.Outcome, error) {
	const around = 1 << 10 // what is written beside the content, about
	begin, end := s.around(r)
	size := len(c.content) + len(c.content)/16
	if c.blob {
		size = base64.StdEncoding.EncodedLen(len(c.content))
	}
	long := 0
	msg := wire.NewLongResult(r.Msg.ID(), size+2*len(c.uri)+around, func(b []byte) []byte {
		b = wire.AppendQuote(append(append(b, begin...), `"contents":[{"uri":`...), c.uri)
		b = wire.AppendQuote(append(b, `,"mimeType":`...), c.kind)
		from := len(b)
		if c.blob {
			b = append(base64.StdEncoding.AppendEncode(append(b, `,"blob":"`...), c.content), '"')
		} else {
			b = wire.AppendQuoteBytes(append(b, `,"text":`...), c.content)
		}
		long = len(b) - from
		return append(append(append(b, `}]`...), hints(r, noHints)...), end...)
	})
	if long > maxAnswer-len(c.uri) {
		return exchange.Outcome{}, refuse(codeTooLarge, "The answer would be %d bytes long, and one answer carries at most %d.", long, maxAnswer)
	}
	return exchange.Outcome{Msg: msg}, nil
}

// uriCursor stands between the URI of a directory and the name behind which its list goes on.
const uriCursor = "?cursor="

// cutCursor returns the URI of a directory and the name behind which its list goes on, if it says one.
func cutCursor(uri string) (dir, last string, found bool) {
	dir, escaped, found := strings.Cut(uri, uriCursor)
	last, err := url.PathUnescape(escaped)
	if !found || err != nil {
		return uri, "", false
	}
	return dir, last, true
}

// listURIs is the content of a directory: the URIs of what is in it, one a line, those of directories with a slash at the
// end; up to about a number of bytes, with a note of what is left out and how to go on.
func listURIs(dir string, entries []rootfs.Entry, most int) string {
	var text strings.Builder
	for i, e := range entries {
		if text.Len() >= most {
			fmt.Fprintf(&text, "# %d more are not listed, because one answer carries at most %d bytes of them. To go on, read %s\n",
				len(entries)-i, most, roots.FileURI(dir)+uriCursor+cursorAt(entries[i-1].Name))
			break
		}
		text.WriteString(roots.FileURI(filepath.Join(dir, e.Name)))
		if e.Type == fs.ModeDir {
			text.WriteByte('/')
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// mediaType returns the media type that the ending of a name says, else another. The list is our own, so that it is the
// same on every machine.
func mediaType(path, otherwise string) string {
	if kind, ok := mediaTypes[strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))]; ok {
		return kind
	}
	return otherwise
}

var mediaTypes = map[string]string{
	"css": "text/css", "csv": "text/csv", "htm": "text/html", "html": "text/html", "js": "text/javascript", "md": "text/markdown",
	"mjs": "text/javascript", "txt": "text/plain", "xml": "text/xml", "tsv": "text/tab-separated-values", "ics": "text/calendar",
	"json": "application/json", "jsonl": "application/x-ndjson", "pdf": "application/pdf", "toml": "application/toml",
	"yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip", "gz": "application/gzip",
	"tar": "application/x-tar", "wasm": "application/wasm", "sqlite": "application/vnd.sqlite3", "epub": "application/epub+zip",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"avif": "image/avif", "bmp": "image/bmp", "gif": "image/gif", "ico": "image/vnd.microsoft.icon", "jpeg": "image/jpeg",
	"jpg": "image/jpeg", "png": "image/png", "svg": "image/svg+xml", "tif": "image/tiff", "tiff": "image/tiff", "webp": "image/webp",
	"aac": "audio/aac", "flac": "audio/flac", "m4a": "audio/mp4", "mp3": "audio/mpeg", "ogg": "audio/ogg", "opus": "audio/ogg",
	"wav": "audio/wav", "mov": "video/quicktime", "mp4": "video/mp4", "webm": "video/webm",
	"otf": "font/otf", "ttf": "font/ttf", "woff": "font/woff", "woff2": "font/woff2",
}
