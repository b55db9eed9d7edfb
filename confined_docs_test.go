package rootbound_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// confinedRows are the rows of the table in docs/limits.md that says what stops a confined server, by a part of their first
// cell, with the attempts of the probe that they are about.
var confinedRows = map[string][]string{
	"to open, list, write": {
		"read outside", "read /etc/passwd", "list outside", "list /", "list /proc", "read outside, by a link inside",
		"read outside, by a link made now", "make a hard link to outside", "read outside, by /proc/self/root",
		"read outside, by a handle without rights", "write outside", "create outside", "truncate outside",
		"make a directory outside", "make a link outside", "remove outside", "move from inside to outside",
		"move from outside to inside",
	},
	"to make FIFOs":                {"make a FIFO inside", "make a socket inside", "make a device inside"},
	"to run a program outside":     {"run a program outside", "run a program written inside"},
	"to run a program from memory": {"run a program without a file"},
	"has a second name":            {"read outside, by a hard link inside"},
	"to look at a file outside":    {"look at a file outside", "watch a directory outside"},
	"to change mode and times":     {"change the mode outside", "change the times outside"},
	"to change their owner":        {"change the owner outside", "change attributes outside", "read attributes outside", "change flags outside", "make a program for other users inside", "take a file's handle outside"},
	"to connect over TCP":          {"connect over TCP", "connect to the proxy", "connect to its port on another host", "connect elsewhere, by a race"},
	"to connect over UDP":          {"connect over MPTCP", "connect over TCP with the first data", "listen on a TCP port", "send over UDP", "listen on a UDP port", "make a raw socket", "make a packet socket", "make a netlink socket", "make a vsock socket"},
	"a Unix socket that is a file": {"connect to a Unix socket outside", "send to a Unix socket outside, from a pair"},
	"an abstract Unix socket":      {"connect to an abstract Unix socket"},
	"to signal the guard":          {"signal the guard"},
	"to read or trace":             {"trace the guard", "read the guard's memory by a call", "take a descriptor of the guard"},
	"to read the environment":      {"read the guard's environment", "read the guard's memory"},
	"to limit the guard":           {"limit the guard", "lower the guard's class of input", "slow the guard down", "slow its process group down", "lower its process group's class of input"},
	"io_uring":                     {"share memory by number", "read the session's keys", "set up io_uring", "load a program into the kernel", "make a user namespace", "make a user namespace by clone3", "change the root"},
	"to mount":                     {"share a queue by name", "mount"},
	"to type into your terminal":   {"type into a terminal"},
	"to use what the guard has":    {"read an inherited descriptor"},
	"to use what root may":         {"see a capability"},
}

// rightful are the attempts that have to succeed.
var rightful = []string{
	"read inside", "write inside", "replace inside", "remove inside", "remove a directory inside", "make a pair of sockets", "signal itself",
}

// byProxy is the row that has a column of its own in the golden tables: what holds when only our proxy may be reached.
const byProxy = "with `net ="

// The table of the limits says what the golden tables of the sandbox say, and leaves out nothing that they have.
func TestConfinedTable(t *testing.T) {
	golden := map[string]map[string][]string{} // by attempt and column, what became of it for each user
	for _, user := range []string{"root", "user"} {
		var columns []string
		cell := regexp.MustCompile(`\s{2,}`)
		for line := range strings.Lines(read(t, "internal/sandbox/testdata/probes-"+user+".txt")) {
			cells := cell.Split(strings.TrimSpace(line), -1)
			if columns == nil {
				columns = cells
				continue
			}
			if len(cells) != len(columns) {
				t.Fatalf("probes-%s.txt has a line of %d cells: %q", user, len(cells), line)
			}
			if golden[cells[0]] == nil {
				golden[cells[0]] = map[string][]string{}
			}
			for i, c := range cells[1:] {
				golden[cells[0]][columns[i+1]] = append(golden[cells[0]][columns[i+1]], c)
			}
		}
	}
	// through reports whether an attempt comes through for one of the users.
	through := func(attempt, column string) bool {
		cells, ok := golden[attempt][column]
		if !ok {
			t.Fatalf("the golden tables have no %q in the column %q", attempt, column)
		}
		return slices.Contains(cells, "yes")
	}
	says := func(attempts []string, column, oldest string) string {
		newest, older := 0, 0
		for _, a := range attempts {
			if through(a, column) {
				newest++
			}
			if through(a, oldest) {
				older++
			}
		}
		switch all := len(attempts); {
		case newest == all:
			return "yes"
		case newest == 0 && older == 0:
			return "–"
		case newest == 0 && older == all:
			return "– from N on"
		}
		return "some"
	}

	seen := map[string]bool{}
	from := regexp.MustCompile(`from \d+ on`)
	for _, row := range confinedTable(t) {
		key, attempts := "", []string(nil)
		for part, list := range confinedRows {
			if strings.Contains(row[0], part) {
				key, attempts = part, list
			}
		}
		if strings.HasPrefix(row[0], byProxy) {
			for _, a := range []string{"connect to its port on another host", "connect elsewhere, by a race"} {
				if through(a, "net proxy") || row[4] != "–" {
					t.Errorf("row %q: %q comes through with a proxy: %v", row[0], a, through(a, "net proxy"))
				}
			}
			continue
		}
		if key == "" {
			t.Errorf("row %q is about no attempt", row[0])
			continue
		}
		seen[key] = true
		want := []string{says(attempts, "nothing", "nothing"), says(attempts, "landlock 7", "landlock 3"), says(attempts, "seccomp", "seccomp"), says(attempts, "all, abi 7", "all, abi 3")}
		for i, got := range row[1:] {
			got = from.ReplaceAllString(strings.Trim(got, "*"), "from N on")
			for word, column := range map[string]string{" (closed)": "descriptors", " (dropped)": "no caps"} { // the layer that has no column
				if bare, ok := strings.CutSuffix(got, word); ok {
					if got = bare; says(attempts, column, column) != "–" {
						t.Errorf("row %q: %q says%s, and that stops it not", row[0], row[i+1], word)
					}
				}
			}
			if got != want[i] {
				t.Errorf("row %q says %q in column %d, and the golden tables %q", row[0], row[i+1], i+1, want[i])
			}
		}
		// What is promised to be stopped, is stopped for both users and in each way.
		for _, a := range attempts {
			if row[4] == "–" && through(a, "all, abi 5") {
				t.Errorf("row %q: %q comes through", row[0], a)
			}
		}
	}
	for part, attempts := range confinedRows {
		if !seen[part] {
			t.Errorf("docs/limits.md has no row with %q", part)
		}
		for _, a := range attempts {
			delete(golden, a)
		}
	}
	for _, a := range rightful {
		if !through(a, "all, abi 7") {
			t.Errorf("%q does not succeed, and is nothing to stop", a)
		}
		delete(golden, a)
	}
	for a := range golden {
		t.Errorf("the attempt %q is in no row of docs/limits.md", a)
	}
}

// confinedTable returns the rows of the table, without its head.
func confinedTable(t *testing.T) (rows [][]string) {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, "docs/limits.md"), "| a program tries | nothing | Landlock | seccomp | all |\n")
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") {
			return rows
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 5 {
			t.Fatalf("a row of docs/limits.md has %d cells: %s", len(cells), line)
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}
