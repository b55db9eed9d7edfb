package fsserver

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is found comes in the order of the paths, however it lies in directories.
func TestOrdered(t *testing.T) {
	names := []string{"a", "a.b", "a-", "b", "b b", "ä", "A", "a\x01"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		dirs := map[string]*foundIn{}
		want := map[string]bool{}
		for range random.IntN(20) {
			var elems []string
			for range 1 + random.IntN(4) {
				elems = append(elems, names[random.IntN(len(names))])
			}
			p := strings.Join(elems, "/")
			if want[p] {
				continue
			}
			want[p] = true
			dir := strings.TrimPrefix(path.Dir("/"+p), "/")
			if dirs[dir] == nil {
				dirs[dir] = &foundIn{dir: dir}
			}
			dirs[dir].names = append(dirs[dir].names, path.Base(p))
		}
		var found []*foundIn
		for _, f := range dirs { // in any order
			slices.Sort(f.names)
			found = append(found, f)
		}
		sorted := []string{}
		for p := range want {
			sorted = append(sorted, p)
		}
		slices.SortFunc(sorted, comparePaths)
		got := []string{}
		for p := range ordered(found) {
			got = append(got, p)
		}
		if diff := cmp.Diff(sorted, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		n := 0
		for range ordered(found) {
			if n++; n == 3 {
				break
			}
		}
	}
}
