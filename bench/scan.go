package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
)

// scanBudgets are what one strict scan may cost, by payload: time in microseconds, allocations, and bytes of garbage in
// megabytes. Nothing is promised where it is 0.
var scanBudgets = []struct {
	name, title string
	micros      float64
	noAllocs    bool
	garbage     float64
}{
	{"string/1024", "1 KB, one long string", 2, true, 0},
	{"string/1048576", "1 MB, one long string", 1500, true, 0},
	{"source/1024", "1 KB, source text", 0, true, 0},
	{"source/1048576", "1 MB, source text", 0, true, 0},
	{"dense/1024", "1 KB, like an answer to tools/list", 5, true, 0},
	{"dense/1048576", "1 MB, like an answer to tools/list", 4000, true, 0},
	{"wide/60000", "60,000 names in one object", 50_000, false, 16},
	{"deep/900", "900 objects in each other", 0, false, 0},
	{"deep/9000", "9,000 objects in each other", 0, false, 0},
}

func scan(b *bench) ([]result, error) {
	mode := fmt.Sprint(wire.Strict) // as the benchmarks name it
	cmd := exec.Command("go", "test", "-C", b.repo, "-run", "^$", "-bench", "^BenchmarkScan$/.*/.*/^"+mode+"$", "-benchtime", "200ms", "-count", "7", "./internal/wire")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %q: %w\n%s", cmd.Args, err, out)
	}
	runs := parseBenchmarks(out)
	var results []result
	for _, s := range scanBudgets {
		run, ok := runs["Scan/"+s.name+"/"+mode]
		if !ok {
			return nil, fmt.Errorf("running %q: no benchmark for %s\n%s", cmd.Args, s.name, out)
		}
		took := summary(s.title, "µs", scaled(run["ns/op"], 1e-3))
		if s.micros > 0 {
			took = took.within(s.micros)
		}
		results = append(results, took)
		allocs := summary(s.title+", allocations", "", run["allocs/op"])
		if s.noAllocs {
			results = append(results, allocs.within(0))
		}
		if s.garbage > 0 {
			results = append(results, summary(s.title+", garbage", "MB", scaled(run["B/op"], 1e-6)).within(s.garbage))
		}
	}
	return results, nil
}

func scaled(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * by
	}
	return out
}

var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(-\d+)?\s+\d+\s+(.*)$`)

// parseBenchmarks reads what go test prints: by benchmark and unit, the values of its runs.
func parseBenchmarks(out []byte) map[string]map[string][]float64 {
	all := map[string]map[string][]float64{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		m := benchmarkLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		units := all[m[1]]
		if units == nil {
			units = map[string][]float64{}
			all[m[1]] = units
		}
		for f := strings.Fields(m[3]); len(f) >= 2; f = f[2:] {
			if v, err := strconv.ParseFloat(f[0], 64); err == nil {
				units[f[1]] = append(units[f[1]], v)
			}
		}
	}
	return all
}
