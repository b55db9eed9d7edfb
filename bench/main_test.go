package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain makes the test binary what it starts: a peer, or the server of a test.
func TestMain(m *testing.M) {
	peers[holdRole] = hold
	if len(os.Args) > 1 && peers[os.Args[1]] != nil {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestTheEchoServerAnswersWhatItsClientExpects(t *testing.T) {
	for _, size := range []int{1 << 10, 1 << 20} {
		c := newCall(size, "")
		c.setID(1_234_567)
		if len(c.request) != size {
			t.Errorf("a call of %d bytes has %d", size, len(c.request))
		}
		var got bytes.Buffer
		if err := echo(strings.NewReader(initialize+string(c.request)), &got); err != nil {
			t.Fatal(err)
		}
		hello, answer, _ := strings.Cut(got.String(), "\n")
		if !strings.Contains(hello, `"id":0,`) || !strings.Contains(hello, `"serverInfo"`) {
			t.Errorf("initialize is answered %s", hello)
		}
		if answer != string(c.answer) || !strings.Contains(answer, `"id":1234567,`) {
			t.Errorf("got %.200q, want %.200q", answer, c.answer)
		}
	}
}

func TestBudgets(t *testing.T) {
	for _, tt := range []struct {
		name         string
		r            result
		missed, wide bool
	}{
		{"nothing promised", summary("", "", []float64{1, 2, 3}), false, true},
		{"kept", summary("", "", []float64{3, 2, 100, 2, 2}).within(2), false, true},
		{"missed by the median", summary("", "", []float64{2.1, 2, 2.2}).within(2), true, false},
		{"none at all, and none allowed", summary("", "", []float64{0, 0}).within(0), false, false},
		{"no number", ratio("", []float64{0}, []float64{0}).within(1), true, false},
		{"what slowed both does not count", ratio("", []float64{1, 10, 1}, []float64{2, 20, 2}).within(0.5), false, false},
	} {
		if tt.r.Missed != tt.missed || tt.r.Wide != tt.wide {
			t.Errorf("%s: missed %v, wide %v; want %v, %v", tt.name, tt.r.Missed, tt.r.Wide, tt.missed, tt.wide)
		}
	}
}

func TestTable(t *testing.T) {
	m := measured{"1kb", "round trips", []result{
		summary("direct", "µs", []float64{9.126, 9.126}),
		summary("guard ÷ copier", "", []float64{0.25, 0.26, 0.271}).within(0.3),
		summary("guard ÷ proxy", "", []float64{0.2, 0.4, 1}).within(0.3),
		summary("garbage", "MB", []float64{1234.4}).within(2000),
	}}
	var got bytes.Buffer
	m.table(&got)
	want := `
1kb: round trips
  direct          9.13 µs
  guard ÷ copier  0.26     0.255–0.266  ≤ 0.3      ✔
  guard ÷ proxy   0.4      0.3–0.7 ~    ≤ 0.3      ✘
  garbage         1234 MB               ≤ 2000 MB  ✔
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	r := report{Cases: []measured{m}}
	if r.missed() != 1 {
		t.Errorf("%d missed, want 1", r.missed())
	}
}

func TestReadingWhatTheGoToolPrints(t *testing.T) {
	got := parseBenchmarks([]byte(`goos: linux
BenchmarkScan/string/1024/0-2  	 1562340	       750.5 ns/op	1364.31 MB/s	       0 B/op	       0 allocs/op
BenchmarkScan/string/1024/0-2  	 1562340	       760.5 ns/op	1364.31 MB/s	       2 B/op	       1 allocs/op
BenchmarkScan/wide/60000/0     	     120	  9706000 ns/op
PASS
`))
	want := map[string]map[string][]float64{
		"Scan/string/1024/0": {"ns/op": {750.5, 760.5}, "MB/s": {1364.31, 1364.31}, "B/op": {0, 2}, "allocs/op": {0, 1}},
		"Scan/wide/60000/0":  {"ns/op": {9706000}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("benchmarks (-want +got):\n%s", diff)
	}
	ms, err := sumInits(strings.NewReader(`init internal/bytealg @0.002 ms, 0 ms clock, 0 bytes, 0 allocs
rootbound 0.1.0
init runtime @0.05 ms, 0.25 ms clock, 0 bytes, 0 allocs
init errors @0.1 ms, 1 ms clock, 16 bytes, 1 allocs
`))
	if err != nil || ms != 1.25 {
		t.Errorf("inits take %v ms, %v; want 1.25", ms, err)
	}
	if _, err := sumInits(strings.NewReader("rootbound 0.1.0\n")); err == nil {
		t.Error("no trace counts as no time")
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"1gb"}, {"--csv"}} {
		var out, errw bytes.Buffer
		if code := run(args, &out, &errw); code != exitUsage || errw.Len() == 0 || out.Len() != 0 {
			t.Errorf("%q: exit code %d, output %q, %q", args, code, &out, &errw)
		}
	}
}
