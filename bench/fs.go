package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// fsServer is a filesystem server that is measured.
type fsServer struct {
	name string
	args func(root string) []string
}

// fsServers are ours and the reference server, which .ci/peers installs.
func (b *bench) fsServers() ([]fsServer, error) {
	script := filepath.Join(b.repo, "peers", "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		return nil, fmt.Errorf("finding the reference server (.ci/peers installs it): %w", err)
	}
	return []fsServer{
		{"rootbound fs", func(root string) []string {
			return []string{b.guard, "fs", "--preset", "boundary", "--log", filepath.Join(b.dir, "log"), root}
		}},
		{"reference", func(root string) []string { return []string{"node", script, root} }},
	}, nil
}

// start starts a server and shakes hands with it.
func (b *bench) startFS(s fsServer, root string) (*chain, error) {
	c, err := b.startCommand(s.args(root)...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.name, err)
	}
	c.name = s.name
	if err := c.handshake(); err != nil {
		c.end()
		return nil, fmt.Errorf("shaking hands with %s: %w\n%s", s.name, err, &c.stderr)
	}
	return c, nil
}

// tool calls a tool and returns how long its answer took. An answer that is an error is one here too, unless refused says
// that a refusal is what is measured.
func (c *chain) tool(name, arguments string, refused bool) (time.Duration, error) {
	c.id++
	began := time.Now()
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", c.id, name, arguments); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", c.name, err, &c.stderr)
	}
	if err := c.read(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", c.name, err, &c.stderr)
	}
	took := time.Since(began)
	tail := c.line[max(0, len(c.line)-300):]
	if !bytes.Contains(c.line[:min(200, len(c.line))], []byte(`"result":`)) && !bytes.Contains(tail, []byte(`"id":`)) || bytes.Contains(tail, []byte(`"isError":true`)) && !refused {
		return 0, fmt.Errorf("%s: %s %.200s is answered %.300s", c.name, name, arguments, c.line)
	}
	return took, nil
}

// fsStart measures from the start of the process to its answer to initialize.
func fsStart(b *bench) ([]result, error) {
	servers, err := b.fsServers()
	if err != nil {
		return nil, err
	}
	const rounds = 11
	took := make([][]float64, len(servers))
	for range rounds {
		for i, s := range servers {
			d, err := b.firstByte(s.args(b.root))
			if err != nil {
				return nil, fmt.Errorf("starting %s: %w", s.name, err)
			}
			took[i] = append(took[i], d.Seconds())
		}
	}
	results := compare(servers, "start to the answer to initialize", "ms", 1e3, took, 1./40)
	starts, reads, err := b.officialClient(servers)
	if err != nil {
		return nil, err
	}
	results = append(results, compare(servers, "the same, official TypeScript client", "ms", 1e3, starts, 1./8)...)
	return append(results, compare(servers, "read of a small file, official TypeScript client", "ms", 1e3, reads, 1./3)...), nil
}

// compare is the results of ours and the reference's values, and their ratio with its budget.
func compare(servers []fsServer, what, unit string, scale float64, values [][]float64, most float64) []result {
	var results []result
	for i, s := range servers {
		results = append(results, summary(what+", "+s.name, unit, scaled(values[i], scale)))
	}
	return append(results, ratio(what+", ratio", values[0], values[1]).within(most))
}

// officialClient lets the official client start each server and read a small file: seconds by server and round.
func (b *bench) officialClient(servers []fsServer) (starts, reads [][]float64, err error) {
	file := filepath.Join(b.root, "small.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("a line of text\n", 64)), 0o600); err != nil {
		return nil, nil, err
	}
	job := struct {
		Modules  string     `json:"modules"`
		File     string     `json:"file"`
		Rounds   int        `json:"rounds"`
		Reads    int        `json:"reads"`
		Commands [][]string `json:"commands"`
	}{filepath.Join(b.repo, "peers", "package.json"), file, 7, 300, nil}
	for _, s := range servers {
		job.Commands = append(job.Commands, s.args(b.root))
	}
	in, err := json.Marshal(job)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command("node", filepath.Join(b.repo, "bench", "client.mjs"))
	cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_CONFIG_HOME="+b.home, "XDG_STATE_HOME="+b.home)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("running the official client: %w", err)
	}
	var got struct{ Starts, Reads [][]float64 }
	if err := json.Unmarshal(out, &got); err != nil || len(got.Starts) != len(servers) || len(got.Reads) != len(servers) {
		return nil, nil, fmt.Errorf("reading what the official client says: %w: %.200q", err, out)
	}
	return got.Starts, got.Reads, nil
}

// fsMemory measures what an idle server keeps, and the most that one call takes.
func fsMemory(b *bench) ([]result, error) {
	servers, err := b.fsServers()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "large")
	if err := largeFiles(dir); err != nil {
		return nil, err
	}
	idle := make([][]float64, len(servers))
	for range idleGuards {
		for i, s := range servers {
			u, err := b.fsUsage(s, dir, "", "")
			if err != nil {
				return nil, err
			}
			idle[i] = append(idle[i], u.resident)
		}
	}
	results := compare(servers, "idle, resident", "MB", 1, idle, 1./4)
	whole, err := b.fsUsage(servers[0], dir, "read_text_file", `{"path":"4MiB.txt"}`)
	if err != nil {
		return nil, err
	}
	results = append(results, summary("whole read of 4 MiB, most ever resident beyond idle ÷ the file", "", []float64{(whole.peak - quantile(idle[0], 0.5)) * 1e6 / (4 << 20)}).within(6))
	for _, call := range []struct{ name, arguments string }{
		{"read_text_file", `{"path":"100MB.txt","head":100}`}, {"read_text_file", `{"path":"100MB.txt","tail":100}`},
		{"read_lines", `{"path":"100MB.txt","offset":1000000,"limit":100}`},
	} {
		u, err := b.fsUsage(servers[0], dir, call.name, call.arguments)
		if err != nil {
			return nil, err
		}
		results = append(results, summary(call.name+" "+call.arguments+", most ever resident", "MB", []float64{u.peak}).within(32))
	}
	return results, nil
}

// fsUsage returns the memory of a server after one call, or of an idle one.
func (b *bench) fsUsage(s fsServer, root, tool, arguments string) (u usage, err error) {
	c, err := b.startFS(s, root)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	if tool != "" {
		if _, err := c.tool(tool, arguments, false); err != nil {
			return u, err
		}
	} else {
		time.Sleep(300 * time.Millisecond) // idle is what it is when its start is over
	}
	return memoryOf(c.cmd.Process.Pid)
}

// fsCalls measures calls of both servers over the same trees, in turns.
func fsCalls(b *bench) ([]result, error) {
	servers, err := b.fsServers()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "calls")
	if err := errors.Join(largeFiles(dir), wideTree(filepath.Join(dir, "list"), 1, 1000), wideTree(filepath.Join(dir, "tree"), 200, 100)); err != nil {
		return nil, err
	}
	var chains []*chain
	defer func() {
		for _, c := range chains {
			c.end()
		}
	}()
	for _, s := range servers {
		c, err := b.startFS(s, dir)
		if err != nil {
			return nil, err
		}
		chains = append(chains, c)
	}
	var results []result
	for _, call := range []struct {
		what, tool, arguments string
		rounds, calls         int
		most                  float64
		dirs                  []string // what the kernel has to read for it
	}{
		{"read of a file of 1 KB", "read_text_file", `{"path":"1KB.txt"}`, 11, 200, 1. / 5, nil},
		{"whole read of 4 MiB", "read_text_file", `{"path":"4MiB.txt"}`, 9, 4, 1. / 4, nil},
		{"first 100 lines of 100 MB", "read_text_file", `{"path":"100MB.txt","head":100}`, 7, 20, 1. / 4, nil},
		{"last 100 lines of 100 MB", "read_text_file", `{"path":"100MB.txt","tail":100}`, 7, 20, 1. / 4, nil},
		{"list_directory of 1,000", "list_directory", `{"path":"list"}`, 9, 20, 1. / 4, directories(filepath.Join(dir, "list"), 1)},
		{"directory_tree over 20,000 files", "directory_tree", `{"path":"tree"}`, 9, 2, 1. / 8, directories(filepath.Join(dir, "tree"), 200)},
		{"search_files over 20,000 files", "search_files", `{"path":"tree","pattern":"**/*7.txt"}`, 5, 2, 1. / 30, nil},
	} {
		took := make([][]float64, len(chains))
		var kernel []float64
		var sizes []string
		for round := range call.rounds {
			for i, c := range chains {
				block := make([]float64, call.calls)
				for n := -1; n < call.calls; n++ { // the first one finds cold caches
					d, err := c.tool(call.tool, call.arguments, false)
					if err != nil {
						return nil, err
					}
					if n >= 0 {
						block[n] = d.Seconds()
					}
				}
				took[i] = append(took[i], quantile(block, 0.5))
				if round == 0 {
					sizes = append(sizes, strconv.Itoa(len(c.line)))
				}
			}
			if call.dirs != nil {
				block := make([]float64, call.calls)
				for n := range block {
					d, err := readDirectories(call.dirs, min(runtime.NumCPU(), len(call.dirs)))
					if err != nil {
						return nil, err
					}
					block[n] = d.Seconds()
				}
				kernel = append(kernel, quantile(block, 0.5))
			}
		}
		results = append(results, compare(servers, call.what+" (answers of "+strings.Join(sizes, " and ")+" bytes)", "ms", 1e3, took, call.most)...)
		if call.dirs != nil {
			results = append(results, summary(call.what+", its directories read by the kernel and nothing else", "ms", scaled(kernel, 1e3)),
				ratio(call.what+", that ÷ the reference", kernel, took[1]))
		}
	}
	var one []float64
	for range 5 {
		d, err := chains[0].tool("read_text_file", `{"path":"50MB.line","head":1}`, true)
		if err != nil {
			return nil, err
		}
		one = append(one, d.Seconds()*1e3)
	}
	return append(results, summary("head 1 of a line of 50 MB, rootbound fs", "ms", one).within(50)), nil
}

// fsMillion measures a search over a million entries against fd.
func fsMillion(b *bench) ([]result, error) {
	dir := filepath.Join(b.dir, "million")
	if err := wideTree(dir, 1000, 1000); err != nil {
		return nil, err
	}
	fd, err := lookPath("fdfind", "fd")
	if err != nil {
		return nil, err
	}
	return b.againstCommand(dir, 5, []commandCase{
		{"search_files over 1 M entries, few matches", "search_files", `{"path":".","pattern":"**/f777.txt"}`,
			[]string{fd, "-u", "--glob", "f777.txt", dir}, "fd", 0.6},
		{"search_files over 1 M entries, by suffix", "search_files", `{"path":".","pattern":"**/*99.txt"}`,
			[]string{fd, "-u", "--glob", "*99.txt", dir}, "fd", 0.6},
	})
}

// fsContent measures a search in texts against ripgrep.
func fsContent(b *bench) ([]result, error) {
	dir := filepath.Join(b.dir, "texts")
	if err := sourceTree(dir, 4000, 30<<10); err != nil {
		return nil, err
	}
	rg, err := lookPath("rg")
	if err != nil {
		return nil, err
	}
	return b.againstCommand(dir, 7, []commandCase{
		{"search_content over 120 MB, a word", "search_content", `{"path":".","pattern":"needleInHay"}`, []string{rg, "-n", "needleInHay", dir}, "rg", 3},
		{"search_content over 120 MB, a pattern with a word in it", "search_content", `{"path":".","pattern":"\\w+InHay\\("}`, []string{rg, "-n", `\w+InHay\(`, dir}, "rg", 5},
	})
}

// commandCase is a tool of ours against a command that does the same.
type commandCase struct {
	what, tool, arguments string
	command               []string
	peer                  string
	most                  float64
}

func (b *bench) againstCommand(root string, rounds int, cases []commandCase) ([]result, error) {
	servers, err := b.fsServers()
	if err != nil {
		return nil, err
	}
	c, err := b.startFS(servers[0], root)
	if err != nil {
		return nil, err
	}
	defer c.end()
	var results []result
	for _, k := range cases {
		var ours, theirs []float64
		for n := range rounds + 1 { // the first one finds cold caches
			d, err := c.tool(k.tool, k.arguments, false)
			if err != nil {
				return nil, err
			}
			began := time.Now()
			out, err := exec.Command(k.command[0], k.command[1:]...).Output()
			if err != nil || len(out) == 0 {
				return nil, fmt.Errorf("running %q: %w, %d bytes", k.command, err, len(out))
			}
			if n > 0 {
				ours, theirs = append(ours, d.Seconds()), append(theirs, time.Since(began).Seconds())
			}
		}
		results = append(results, summary(k.what+", rootbound fs", "ms", scaled(ours, 1e3)), summary(k.what+", "+k.peer, "ms", scaled(theirs, 1e3)),
			ratio(k.what+", ratio", ours, theirs).within(k.most))
	}
	return results, nil
}

func lookPath(names ...string) (string, error) {
	var err error
	for _, n := range names {
		var path string
		if path, err = exec.LookPath(n); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("finding %s (a Debian package: fd-find, ripgrep): %w", names[0], err)
}

// fsOpen measures a confined open against a plain one.
func fsOpen(b *bench) ([]result, error) {
	cmd := exec.Command("go", "test", "-C", b.repo, "-run", "^$", "-bench", "^BenchmarkOpen$/^(kernel|os.Open)$", "-benchtime", "200ms", "-count", "7", "./rootfs")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %q: %w\n%s", cmd.Args, err, out)
	}
	runs := parseBenchmarks(out)
	confined, plain := runs["Open/kernel"]["ns/op"], runs["Open/os.Open"]["ns/op"]
	if len(confined) == 0 || len(confined) != len(plain) {
		return nil, fmt.Errorf("running %q: no benchmarks Open/kernel and Open/os.Open\n%s", cmd.Args, out)
	}
	return []result{
		summary("open and close at depth 5, rootfs", "µs", scaled(confined, 1e-3)), summary("open and close at depth 5, os.Open", "µs", scaled(plain, 1e-3)),
		ratio("ratio", confined, plain).within(1.3),
	}, nil
}

// largeFiles makes the files that reads are measured with.
func largeFiles(dir string) error {
	const line = "a line of text that is as long as lines of text often are, and ends here\n"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, size := range map[string]int{"1KB.txt": 1 << 10, "4MiB.txt": 4 << 20, "100MB.txt": 100e6} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte(line), size/len(line)+1)[:size], 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "50MB.line"), bytes.Repeat([]byte{'x'}, 50e6), 0o600)
}

// wideTree makes directories with as many empty files each.
func wideTree(dir string, dirs, files int) error {
	for d := range dirs {
		in := filepath.Join(dir, "d"+strconv.Itoa(d))
		if dirs == 1 {
			in = dir
		}
		if err := os.MkdirAll(in, 0o700); err != nil {
			return err
		}
		for f := range files {
			file, err := os.Create(filepath.Join(in, "f"+strconv.Itoa(f)+".txt"))
			if err != nil {
				return err
			}
			file.Close()
		}
	}
	return nil
}

// directories are those of a wideTree that hold its files.
func directories(dir string, n int) []string {
	if n == 1 {
		return []string{dir}
	}
	dirs := make([]string, n)
	for d := range dirs {
		dirs[d] = filepath.Join(dir, "d"+strconv.Itoa(d))
	}
	return dirs
}

// sourceTree makes files of source text. One in a hundred has the word that is looked for.
func sourceTree(dir string, files, size int) error {
	const text = "\tif err := document.Write(ctx, name); err != nil {\n\t\treturn fmt.Errorf(\"writing %q: %w\", name, err)\n\t}\n\n"
	body := bytes.Repeat([]byte(text), size/len(text))
	for f := range files {
		path := filepath.Join(dir, "p"+strconv.Itoa(f/50), "s"+strconv.Itoa(f)+".go")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		content := body
		if f%100 == 0 {
			content = append(bytes.Clone(body), "func needleInHay(x int) {}\n"...)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
