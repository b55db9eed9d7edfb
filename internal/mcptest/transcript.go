package mcptest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// Guard starts what is tested between a client and the server that args and env start. It returns the client's ends; the
// test closes stdin.
type Guard func(t *testing.T, args, env []string) (stdin io.WriteCloser, stdout io.Reader)

// Transcript is what a client and a server say, and what each of them must get. A line is one of
//
//	# a remark                                   #! WORDS    an option, which the test that plays it reads
//	C> LINE    the client sends LINE             C< LINE    the client must get LINE
//	S> LINE    the server sends LINE             S< LINE    the server must get LINE
//	S+         the server must be started        S! N       the server ends with exit code N
//	C.         the client closes                 S.         the server's input must end
//	C!         the client closes, and hears no more
//
// and what must come must be exact, except that ${name} stands for some text within a string or a number; the same name
// stands for the same text everywhere. In what is sent, ${name} is what it stood for.
type Transcript struct {
	// Name is the name of its file in the archive, without the suffix.
	Name string
	Text string
	// Tree are the files of the archive that are no transcripts.
	Tree []txtar.File

	line int // how many lines of the archive are before it
}

const suffix = ".transcript"

// Archive reads the transcripts of a txtar archive: its files that end in ".transcript", each of which is played apart, in a
// tree of the others.
func Archive(file string) ([]Transcript, error) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		return nil, err
	}
	var list []Transcript
	var tree []txtar.File
	line := bytes.Count(a.Comment, []byte("\n"))
	for _, f := range a.Files {
		line++ // the marker
		if name, ok := strings.CutSuffix(f.Name, suffix); ok {
			list = append(list, Transcript{Name: name, Text: string(f.Data), line: line})
		} else {
			tree = append(tree, f)
		}
		line += bytes.Count(f.Data, []byte("\n"))
	}
	for i := range list {
		list[i].Tree = tree
	}
	return list, nil
}

// Transcripts runs play as a parallel test for each transcript of the archives that match pattern: ARCHIVE/NAME.
func Transcripts(t *testing.T, pattern string, play func(t *testing.T, tr Transcript)) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts at %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			list, err := Archive(file)
			if err != nil || len(list) == 0 {
				t.Fatalf("no transcripts in %s: %v", file, err)
			}
			for _, tr := range list {
				t.Run(tr.Name, func(t *testing.T) {
					t.Parallel()
					play(t, tr)
				})
			}
		})
	}
}

// Options returns the words of each line "#! WORDS".
func (tr Transcript) Options() [][]string {
	var all [][]string
	for line := range strings.Lines(tr.Text) {
		if rest, ok := strings.CutPrefix(line, "#!"); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				all = append(all, words)
			}
		}
	}
	return all
}

// Play plays it. Names are known from the start.
func (tr Transcript) Play(t *testing.T, names map[string]string, start Guard) {
	srv := NewServer(t)
	args, env := srv.Command()
	stdin, stdout := start(t, args, env)
	p := &player{t: t, names: map[string]string{}, server: srv, client: newPeer(stdin, stdout), line: tr.line}
	for k, v := range names {
		p.names[k] = v
	}
	for line := range strings.Lines(tr.Text) {
		p.line++
		if line = strings.TrimRight(line, "\r\n"); line != "" && line[0] != '#' {
			p.play(line)
		}
	}
	stdin.Close()
	if p.conn != nil {
		p.conn.Close()
	}
	for rest := range p.client.lines {
		if p.away {
			continue
		}
		t.Errorf("the client got more than the transcript says: %s", rest)
	}
}

// Play plays one transcript that is in no archive.
func Play(t *testing.T, text string, names map[string]string, start Guard) {
	Transcript{Text: text}.Play(t, names, start)
}

type peer struct {
	w     io.Writer
	lines chan string
}

func newPeer(w io.Writer, r io.Reader) *peer {
	p := &peer{w: w, lines: make(chan string, 1024)}
	go func() {
		defer close(p.lines)
		s := bufio.NewReader(r)
		for {
			line, err := s.ReadString('\n')
			if line != "" {
				p.lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

type player struct {
	t      *testing.T
	line   int
	names  map[string]string
	server *Server
	child  *peer
	conn   net.Conn
	client *peer
	away   bool // the client does not hear any more
}

func (p *player) play(line string) {
	p.t.Helper()
	op, rest := line, ""
	if len(line) > 2 {
		op, rest = line[:2], strings.TrimPrefix(line[2:], " ")
	}
	switch op {
	case "C>":
		p.send(p.client, rest)
	case "S>":
		p.send(p.serverPeer(), rest)
	case "C<":
		p.expect(p.client, "client", rest)
	case "S<":
		p.expect(p.serverPeer(), "server", rest)
	case "S+":
		p.conn = p.server.Accept()
		p.child = newPeer(p.conn, p.conn)
	case "S!":
		p.send(p.serverPeer(), "!exit "+rest)
		p.child = nil
	case "C.", "C!":
		p.client.w.(io.Closer).Close()
		p.away = op == "C!"
	case "S.":
		p.end(p.serverPeer(), "server")
		p.conn.Close()
		p.child = nil
	default:
		p.t.Fatalf("line %d: unknown %q", p.line, line)
	}
}

// serverPeer is the running child; the first use waits for its start.
func (p *player) serverPeer() *peer {
	if p.child == nil {
		p.play("S+")
	}
	return p.child
}

var nameRE = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)

func (p *player) fill(s string) string {
	return nameRE.ReplaceAllStringFunc(s, func(m string) string {
		v, ok := p.names[m[2:len(m)-1]]
		if !ok {
			p.t.Fatalf("line %d: %s stands for nothing yet", p.line, m)
		}
		return v
	})
}

func (p *player) send(to *peer, line string) {
	p.t.Helper()
	if _, err := io.WriteString(to.w, p.fill(line)+"\n"); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		p.t.Fatalf("line %d: sending: %v", p.line, err)
	}
}

func (p *player) next(from *peer, who string) (string, bool) {
	p.t.Helper()
	select {
	case got, ok := <-from.lines:
		return got, ok
	case <-time.After(Patience):
		p.t.Fatalf("line %d: nothing came to the %s", p.line, who)
		return "", false
	}
}

func (p *player) end(from *peer, who string) {
	p.t.Helper()
	if got, ok := p.next(from, who); ok {
		p.t.Fatalf("line %d: the %s got %s instead of the end", p.line, who, got)
	}
}

func (p *player) expect(from *peer, who, want string) {
	p.t.Helper()
	got, ok := p.next(from, who)
	if !ok {
		p.t.Fatalf("line %d: the %s's stream ended before %s", p.line, who, want)
	}
	if got == want {
		return
	}
	var pattern strings.Builder
	var names []string
	at := 0
	for _, m := range nameRE.FindAllStringSubmatchIndex(want, -1) {
		pattern.WriteString(regexp.QuoteMeta(want[at:m[0]]))
		name := want[m[2]:m[3]]
		if v, known := p.names[name]; known {
			pattern.WriteString(regexp.QuoteMeta(v))
		} else {
			pattern.WriteString(`((?:[^"\\]|\\.)*?)`)
			names = append(names, name)
		}
		at = m[1]
	}
	pattern.WriteString(regexp.QuoteMeta(want[at:]))
	found := regexp.MustCompile("^" + pattern.String() + "$").FindStringSubmatch(got)
	if found == nil {
		p.t.Fatalf("line %d: the %s got\n     %.2000s\nwant %.2000s", p.line, who, got, want)
	}
	for i, name := range names {
		if v, known := p.names[name]; known && v != found[i+1] {
			p.t.Fatalf("line %d: ${%s} stands for %q and for %q in\n     %s", p.line, name, v, found[i+1], got)
		}
		p.names[name] = found[i+1]
	}
}
