// Command release makes everything that a release consists of, from one commit, so that whoever makes it again has the same
// bytes.
//
//	cd release && go run . [--only PLATFORM,…] [--out DIR] [--dirty]
//
// Beside each platform's program there are its manual pages, completions, licenses and its list of parts (SBOM), as an archive,
// as a Debian package, as an npm package and in a container image; then what Homebrew and Scoop read, and the sums of all.
// docs/release.md tells how a release is made with it.
//
// # Limits
//
// Nothing is signed and nothing is published. The same bytes come only of the same commit with the same version of Go, which
// the list of parts names.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errw io.Writer) int {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(errw)
	only := flags.String("only", "", "the platforms to make, as linux/amd64,darwin/arm64; host is this one; all without it")
	dir := flags.String("out", filepath.Join("..", "dist"), "the directory to make; what an earlier run left there is replaced")
	dirty := flags.Bool("dirty", false, "also with changes that are in no commit; for a try, since nobody can make it again")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	chosen, err := choose(*only)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("reading the arguments %q: there are too many", flags.Args())
	}
	if err != nil {
		fmt.Fprintf(errw, "release: error: %v\n", err)
		return 2
	}
	r := &release{repo: "..", platforms: chosen, dirty: *dirty, progress: out}
	if err := r.make(*dir); err != nil {
		fmt.Fprintf(errw, "release: error: %v\n", err)
		return 1
	}
	return 0
}

// choose returns the platforms that a list names, in the order that they are made in.
func choose(list string) ([]platform, error) {
	if list == "" {
		return platforms, nil
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		if name == "host" {
			names[i] = host.String()
		}
		if !slices.ContainsFunc(platforms, func(p platform) bool { return p.String() == names[i] }) {
			var all []string
			for _, p := range platforms {
				all = append(all, p.String())
			}
			return nil, fmt.Errorf("choosing the platform %q: there are %s", names[i], strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return !slices.Contains(names, p.String()) }), nil
}

// release is one release while it is made.
type release struct {
	repo      string // the checkout
	platforms []platform
	dirty     bool
	progress  io.Writer

	origin   // of the first program that was built; all have the same
	manual   []file
	complete []file
	made     map[string][]byte // what is written in the end, by name
}

// sums is the file with the sum of each other. A directory with it, and with nothing that it does not list, is one that we made.
const sums = "SHA256SUMS"

// make makes the release in dir. Nothing is there before all is made.
func (r *release) make(dir string) error {
	if err := replaceable(dir); err != nil {
		return err
	}
	if err := r.committed(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-") // not in the checkout, where it would be a change
	if err != nil {
		return fmt.Errorf("making a directory to work in: %w", err)
	}
	defer os.RemoveAll(work)
	r.made = map[string][]byte{}
	var built []*program
	for _, p := range r.platforms {
		fmt.Fprintf(r.progress, "building %s\n", p)
		b, err := r.build(p, filepath.Join(work, "bin"))
		if err != nil {
			return fmt.Errorf("building %s: %w", p, err)
		}
		built = append(built, b)
	}
	if r.manual, r.complete, err = documents(r.version, r.time); err != nil {
		return err
	}
	fmt.Fprintf(r.progress, "packing %s\n", r.version)
	for _, pack := range []func([]*program, string) error{r.parts, r.archives, r.debs, r.npm, r.image, r.taps} {
		if err := pack(built, work); err != nil {
			return err
		}
	}
	r.made[sums] = checksums(r.made)
	if err := writeAll(dir, r.made); err != nil {
		return fmt.Errorf("writing the release to %q: %w", dir, err)
	}
	for _, name := range sortedNames(r.made) {
		fmt.Fprintf(r.progress, "%10d  %s\n", len(r.made[name]), filepath.Join(dir, name))
	}
	return nil
}

// replaceable refuses a directory that holds something else than a release.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	var listed []byte
	if err == nil {
		if listed, err = os.ReadFile(filepath.Join(dir, sums)); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("looking at %q: %w", dir, err)
	}
	ours := map[string]bool{}
	if len(listed) > 0 {
		ours[sums] = true
	}
	for line := range strings.Lines(string(listed)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			ours[name] = true
		}
	}
	for _, e := range entries {
		if !ours[e.Name()] || !e.Type().IsRegular() {
			return fmt.Errorf("looking at %q: there is something in it that is no release, %q: remove it, or choose another with --out", dir, e.Name())
		}
	}
	return nil
}

// writeAll makes a directory of files, or puts it into the place of another.
func writeAll(dir string, made map[string][]byte) error {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(parent, ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	for name, data := range made {
		if err := os.WriteFile(filepath.Join(fresh, name), data, 0o644); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

func sortedNames(made map[string][]byte) []string {
	var names []string
	for name := range made {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}
