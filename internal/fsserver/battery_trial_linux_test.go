package fsserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// trial is a server on a tree of its own, where every answer is held to what must hold for all of them. R and S are its
// roots; all else beside them is outside.
type trial struct {
	w       string // the directory that holds all
	server  exchange.Handler
	set     roots.Set
	era     exchange.Era
	shows   bool // what is outside may be shown
	foreign bool // the server is not ours: its answers are not held to our schemas

	mu     sync.Mutex
	faults []string
}

// outsideSize is the size of the file outside: no answer may say it.
const outsideSize = 12345

// playground is the tree of a trial.
var playground = map[string]string{
	"R/ok.txt":                "inside",
	"R/ok2":                   "two",
	"R/a/b.txt":               "b",
	"S/two.txt":               "second root",
	"outside/f":               strings.Repeat(canary, outsideSize/len(canary)+1)[:outsideSize],
	"outside/hiddenname/deep": canary,
	"outside/canaryname.txt":  canary,
}

func newTrial(t testing.TB, extra map[string]string, o rootfs.Options) *trial {
	t.Helper()
	w := tree(t, playground)
	grow(t, w, extra)
	s := New(Options{Name: "files", Title: "Files", Version: "1.2", Files: o})
	t.Cleanup(s.Close)
	return &trial{w: w, server: exchange.Checked(s, func(err error) { t.Error(err) }),
		set: roots.NewSet(resolve(t, w+"/R", roots.ReadWrite), resolve(t, w+"/S", roots.ReadWrite))}
}

func (c *trial) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// report fails the test with what was found.
func (c *trial) report(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		t.Error(f)
	}
	c.faults = nil
}

// reply is what a tool answered.
type reply struct {
	text    string // of all blocks
	code    string // of an error
	isError bool
	none    bool // none came
}

func (r reply) String() string {
	switch {
	case r.none:
		return "no answer"
	case r.isError:
		return fmt.Sprintf("error %q: %.300q", r.code, r.text)
	}
	return fmt.Sprintf("%.300q", r.text)
}

// call calls a tool with JSON, in which $W is the directory that holds all. It may be called by any goroutine.
func (c *trial) call(t testing.TB, tool, arguments string) reply {
	t.Helper()
	return c.callAs(t, c.era, tool, arguments)
}

func (c *trial) callAs(t testing.TB, era exchange.Era, tool, arguments string) reply {
	t.Helper()
	arguments = c.path(arguments)
	shown := fmt.Sprintf("%s %.200s", tool, arguments)
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	o := exchange.Do(ctx, c.server, request(era, "tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`, c.set))
	if o.Msg == nil {
		c.fault("%s: no answer within %v", shown, patience())
		return reply{none: true}
	}
	answer := o.Msg.Bytes()
	if _, err := wire.Scan(answer, wire.Strict); err != nil || len(answer) > 10<<20 {
		c.fault("%s: the answer has %d bytes, %v: %.200q", shown, len(answer), err, answer)
	}
	if leak := leaked(strings.ReplaceAll(string(answer), c.w, "")); leak != "" && !c.shows {
		c.fault("%s: it shows %q of what lies outside: %.500q", shown, leak, answer)
	}
	var result struct {
		Content           []struct{ Type, Text, Data, MIMEType string }
		StructuredContent any
		IsError           bool
		Meta              map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(o.Msg.Result(), &result); err != nil || len(result.Content) == 0 && !result.IsError && result.StructuredContent == nil {
		c.fault("%s: no result of a tool, %v: %.500q", shown, err, answer)
	}
	r := reply{isError: result.IsError}
	var texts []string
	for _, b := range result.Content {
		texts = append(texts, b.Text)
	}
	r.text = strings.Join(texts, "\n")
	r.code, _ = result.Meta[metaCode].(string)
	switch {
	case c.foreign:
	case r.isError && r.code == "":
		c.fault("%s: an error without a code: %s", shown, r)
	case !r.isError:
		if err := schemas(t)[tool].output.Validate(result.StructuredContent); err != nil {
			c.fault("%s: the answer is not what its output schema says: %v: %.500q", shown, err, answer)
		}
	}
	return r
}

// patience is how long a call may take. In the long run there are some that end by the server's own clock.
func patience() time.Duration {
	if *long {
		return 2 * time.Minute
	}
	return mcptest.Patience
}

func (c *trial) path(s string) string { return strings.ReplaceAll(s, "$W", c.w) }

// leaked returns what of the outside an answer has, "" for nothing. The path of the tree is taken out of it before: it has digits of its own.
func leaked(answer string) string {
	text := strings.TrimSpace(canary)
	for _, secret := range []string{text, base64.StdEncoding.EncodeToString([]byte(text[:len(text)/3*3])), "hiddenname"} {
		if strings.Contains(answer, secret) {
			return secret
		}
	}
	return sizeOutside.FindString(answer)
}

// sizeOutside is the size as a number of its own: numbers that are made up may have its digits.
var sizeOutside = regexp.MustCompile(`\b` + strconv.Itoa(outsideSize) + `\b`)

// schemas are the schemas of all tools, as a client gets them, ready to be used.
var resolvedSchemas struct {
	once sync.Once
	all  map[string]toolSchemas
	err  error
}

type toolSchemas struct{ input, output *jsonschema.Resolved }

func schemas(t testing.TB) map[string]toolSchemas {
	t.Helper()
	resolvedSchemas.once.Do(func() {
		resolvedSchemas.all = map[string]toolSchemas{}
		for _, era := range eras {
			s := New(Options{Name: "files"})
			defer s.Close()
			var list struct {
				Tools []struct {
					Name                      string
					InputSchema, OutputSchema *jsonschema.Schema
				}
			}
			o := exchange.Do(context.Background(), s, request(era, "tools/list", "", roots.Set{}))
			if resolvedSchemas.err = json.Unmarshal(o.Msg.Result(), &list); resolvedSchemas.err != nil {
				return
			}
			for _, tool := range list.Tools {
				var r toolSchemas
				for schema, to := range map[*jsonschema.Schema]**jsonschema.Resolved{tool.InputSchema: &r.input, tool.OutputSchema: &r.output} {
					if *to, resolvedSchemas.err = schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); resolvedSchemas.err != nil {
						resolvedSchemas.err = fmt.Errorf("%v, %s: %w", era, tool.Name, resolvedSchemas.err)
						return
					}
				}
				resolvedSchemas.all[tool.Name] = r
			}
		}
	})
	if resolvedSchemas.err != nil {
		t.Fatal(resolvedSchemas.err)
	}
	return resolvedSchemas.all
}

// outside describes all that lies beside the roots: names, kinds, contents, times. What a case moves there itself begins with "R.".
func (c *trial) outside(t testing.TB) string {
	t.Helper()
	return described(t, c.w, func(rel string) bool { return rel == "R" || rel == "S" || strings.HasPrefix(rel, "R.") })
}

// inside describes all that is in the first root.
func (c *trial) inside(t testing.TB) string {
	t.Helper()
	return described(t, c.w+"/R", func(string) bool { return false })
}

// described describes all that lies beneath a directory, but for what is left out.
func described(t testing.TB, dir string, leftOut func(rel string) bool) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if rel == "." {
			return nil
		}
		if leftOut(rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := ""
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			what, err = os.Readlink(path)
		case d.Type().IsRegular():
			var text []byte
			text, err = os.ReadFile(path)
			what = fmt.Sprintf("%x", sha256.Sum256(text))
		}
		fmt.Fprintf(&b, "%q %v %d %v %q\n", rel, info.Mode(), info.Size(), info.ModTime().UnixNano(), what)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// growth returns what tells how much more memory than now was resident at most, in bytes.
func growth(t testing.TB) func() int64 {
	t.Helper()
	peak := func() int64 {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return kb << 10
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // forgets the peak
		t.Fatal(err)
	}
	before := peak()
	return func() int64 { return peak() - before }
}

// mostGrowth is how much one attempt may take, in bytes. The race detector takes several times as much.
var mostGrowth = sync.OnceValue(func() int64 {
	if builtWith("-race", "true") {
		return 4 << 30
	}
	return 512 << 20
})

// builtWith reports whether this program was built with a flag.
func builtWith(flag, value string) bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: flag, Value: value})
}
