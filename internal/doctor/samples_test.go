package doctor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rootbound/rootbound/internal/clientconf"
)

// sample is one file of a client, with what is to be found in it.
type sample struct {
	name, client string
	text         []byte
	want         []string
}

func samples(t testing.TB) []sample {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", "samples.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, f := range a.Files {
		if _, twice := texts[f.Name]; twice {
			t.Fatalf("there are two files %s", f.Name)
		}
		texts[f.Name] = f.Data
	}
	var list []sample
	for line := range strings.Lines(string(texts["want"])) {
		words := strings.Fields(line)
		s := sample{name: words[0], text: texts[words[0]], want: words[1:]}
		s.client, _, _ = strings.Cut(s.name, "/")
		if s.text == nil {
			t.Fatalf("there is no file %s", s.name)
		}
		if strings.Contains(s.name, "/mark/") {
			s.text = append([]byte(bom), s.text...)
		}
		list = append(list, s)
	}
	if len(list) != len(a.Files)-1 {
		t.Fatalf("%d files, %d of them with what is wanted", len(a.Files)-1, len(list))
	}
	return list
}

const self = "/usr/local/bin/rootbound"

var errNone = errors.New("there is none")

// elsewhere is a machine of which nothing is asked.
func elsewhere() Machine {
	return Machine{
		Host: clientconf.Host{Home: "/home/ana", OS: "linux"},
		LookPath: func(name string) error {
			if name == self {
				return nil
			}
			return errNone
		},
		Self:  self,
		Alone: true,
	}
}

// write puts a sample on the disk and returns its path.
func (s sample) write(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.FromSlash(s.name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, s.text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// examineFile judges a file by itself.
func examineFile(m Machine, client, path string) (*Report, error) {
	files, err := FilesOf(m, client, path)
	if err != nil {
		return nil, err
	}
	return Examine(m, files), nil
}

func ids(r *Report) []string {
	var list []string
	for _, f := range r.Findings {
		if !slices.Contains(list, f.ID) {
			list = append(list, f.ID)
		}
	}
	slices.Sort(list)
	return list
}

func TestSamples(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			r, err := examineFile(elsewhere(), s.client, s.write(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.want, ids(r), cmp.Transformer("", func(l []string) string { return strings.Join(l, " ") })); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			for _, f := range r.Findings {
				switch {
				case f.Line < 1 || f.Column < 1:
					t.Errorf("%s has the place %d:%d", f.ID, f.Line, f.Column)
				case f.Line > bytes.Count(s.text, []byte("\n"))+1:
					t.Errorf("%s is in line %d of %d", f.ID, f.Line, bytes.Count(s.text, []byte("\n")))
				}
				for _, text := range []string{f.What, f.Why, f.Fix} {
					if !strings.HasSuffix(text, ".") || strings.HasSuffix(text, "..") && !strings.HasSuffix(text, `"...`) {
						t.Errorf("%s says %q, which is no sentence", f.ID, text)
					}
				}
			}
		})
	}
}

// Each kind of finding has a sample here, or a script in which a user meets it.
func TestEveryKindIsFound(t *testing.T) {
	found := map[string]bool{}
	for _, s := range samples(t) {
		for _, id := range s.want {
			found[id] = true
		}
	}
	scripts, err := filepath.Glob(filepath.Join("..", "cli", "testdata", "script", "doctor*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range Kinds {
			if strings.Contains(string(text), k.ID) {
				found[k.ID] = true
			}
		}
	}
	for _, k := range Kinds {
		if !found[k.ID] {
			t.Errorf("%s is found nowhere", k.ID)
		}
	}
}
