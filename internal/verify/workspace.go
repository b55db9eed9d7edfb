package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// workspace is a directory of our own: two roots, and what lies around them.
//
//	one/            the first root, with a directory for each case
//	two/            the second root
//	three/          a root that a client switches to
//	outside-…/      what must never be seen
//	…               neighbours of the roots that single cases make
type workspace struct {
	dir             string
	one, two, three string
	outside         string
	inside          map[string]string // the text of a file in each root, by root
	made            int
}

// Roots are the names of the roots in a workspace, by which a command line can name them. The last is switched to.
var Roots = []string{"one", "two", "three"}

const plainName = "plain.txt"

func newWorkspace(dir string) (*workspace, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("making the workspace: %w", err)
	}
	w := &workspace{
		dir: dir, one: filepath.Join(dir, Roots[0]), two: filepath.Join(dir, Roots[1]), three: filepath.Join(dir, Roots[2]),
		outside: filepath.Join(dir, "outside-"+token()), inside: map[string]string{},
	}
	for _, root := range []string{w.one, w.two, w.three} {
		w.inside[root] = "inside " + token()
		err = errors.Join(err, os.MkdirAll(root, 0o755), os.WriteFile(filepath.Join(root, plainName), []byte(w.inside[root]+"\n"), 0o644))
	}
	if err = errors.Join(err, os.Mkdir(w.outside, 0o755)); err != nil {
		w.remove()
		return nil, fmt.Errorf("making the workspace: %w", err)
	}
	return w, nil
}

// mend makes the roots and their plain files what they were, after a server that did something to them.
func (w *workspace) mend() error {
	var err error
	for root, text := range w.inside {
		if info, e := os.Lstat(root); e != nil || !info.IsDir() {
			err = errors.Join(err, os.RemoveAll(root), os.Mkdir(root, 0o755))
		}
		plain := filepath.Join(root, plainName)
		if b, e := os.ReadFile(plain); e != nil || string(b) != text+"\n" {
			err = errors.Join(err, os.RemoveAll(plain), os.WriteFile(plain, []byte(text+"\n"), 0o644))
		}
	}
	if err != nil {
		return fmt.Errorf("mending the workspace: %w", err)
	}
	return nil
}

// remove removes what is in the workspace, also what a server made unreadable.
func (w *workspace) remove() error {
	filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	entries, err := os.ReadDir(w.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(w.dir, e.Name())))
	}
	if err != nil {
		return fmt.Errorf("removing the workspace: %w", err)
	}
	return nil
}

// place is where one case lives: a directory in the first root, and one outside with a canary.
type place struct {
	*workspace
	root string // the directory in the first root
	out  string // the directory outside
	file string // the canary's file in it
	canary
	race   time.Duration     // for each race
	before map[string]string // all that is outside of the roots
}

// place makes a place for a case.
func (w *workspace) place(id string) (*place, error) {
	w.made++
	name := fmt.Sprintf("%s-%d", strings.ToLower(id), w.made)
	p := &place{workspace: w, root: filepath.Join(w.one, name), out: filepath.Join(w.outside, name+"-out")}
	p.canary = canary{text: token(), name: token(), time: time.Date(1971+w.made%20, 2, 3, 4, 5, 6, 0, time.UTC)}
	p.forms = forms(p.text)
	p.file = filepath.Join(p.out, p.name+".txt")
	content := "canary " + p.text + "\n"
	content += strings.Repeat(".", 10_000+37*w.made-len(content)) // a size that is no other's
	p.size = int64(len(content))
	err := errors.Join(os.MkdirAll(p.root, 0o755), os.MkdirAll(p.out, 0o755), os.WriteFile(p.file, []byte(content), 0o644),
		os.WriteFile(p.in("ok.txt"), []byte("ok "+p.root+"\n"), 0o644))
	if err == nil {
		err = os.Chtimes(p.file, p.time, p.time)
	}
	if err != nil {
		return nil, fmt.Errorf("making the place of case %s: %w", id, err)
	}
	return p, nil
}

// in returns a path in the case's directory of the root.
func (p *place) in(elements ...string) string {
	return filepath.Join(append([]string{p.root}, elements...)...)
}

// look remembers what is outside now.
func (p *place) look() { p.before = p.around() }

// around returns what is outside of the roots, by path: content, and what a link says.
func (p *place) around() map[string]string {
	all := map[string]string{}
	filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case path == p.one, path == p.two, path == p.three:
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			all[path] = "link to " + to
		case d.Type().IsRegular():
			b, _ := os.ReadFile(path)
			all[path] = fmt.Sprintf("%d bytes %x", len(b), sha256.Sum256(b))
		default:
			all[path] = d.Type().String()
		}
		return nil
	})
	return all
}

// changed says what is not as it was outside, "" for nothing.
func (p *place) changed() string {
	after := p.around()
	var list []string
	for path, was := range p.before {
		if is, ok := after[path]; !ok {
			list = append(list, filepath.Base(path)+" is gone")
		} else if is != was {
			list = append(list, filepath.Base(path)+" was changed")
		}
	}
	for path := range after {
		if _, ok := p.before[path]; !ok {
			list = append(list, filepath.Base(path)+" was made")
		}
	}
	sort.Strings(list)
	if len(list) > 3 {
		list = append(list[:3], fmt.Sprintf("and %d more", len(list)-3))
	}
	return strings.Join(list, ", ")
}

// snapshot is all that is beneath a directory.
func snapshot(dir string) string {
	var b strings.Builder
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		fmt.Fprintln(&b, path, d.Type())
		if d.Type().IsRegular() {
			content, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "%x\n", sha256.Sum256(content))
		}
		return nil
	})
	return b.String()
}
