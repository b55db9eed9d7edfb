package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// lightServer is a server that starts as fast as there is one: it answers initialize, whatever it is sent, and ends with
// its input.
const lightServer = `read -r line; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"serverInfo":{"name":"sh","version":"1"}}}'; while read -r line; do :; done`

const starts = 41

// start measures from the start of the program to the first byte of the answer, with a server that is a shell: that byte
// comes after the first one was passed on, and the time has the start of the server in it.
func start(b *bench) ([]result, error) {
	server := []string{"/bin/sh", "-c", lightServer}
	guarded := append([]string{b.guard, "run", "--preset", "boundary", "--root", b.root, "--log", filepath.Join(b.dir, "log"), "--"}, server...)
	var alone, behind, inits []float64
	for range starts {
		for _, s := range []struct {
			args []string
			took *[]float64
		}{{server, &alone}, {guarded, &behind}} {
			d, err := b.firstByte(s.args)
			if err != nil {
				return nil, fmt.Errorf("starting %q: %w", s.args, err)
			}
			*s.took = append(*s.took, float64(d)/1e6)
		}
		ms, err := b.initTime()
		if err != nil {
			return nil, err
		}
		inits = append(inits, ms)
	}
	return []result{
		summary("server alone, to its first byte", "ms", alone),
		summary("server behind the guard, to its first byte", "ms", behind).within(10),
		summary("all inits of the guard (GODEBUG=inittrace=1)", "ms", inits).within(2),
	}, nil
}

// firstByte starts a command that finds initialize on its input, and returns how long its first byte took.
func (b *bench) firstByte(args []string) (time.Duration, error) {
	began := time.Now()
	c, err := b.startCommand(args...)
	if err != nil {
		return 0, err
	}
	if _, err = io.WriteString(c.in, initialize); err == nil {
		_, err = c.out.Peek(1)
	}
	took := time.Since(began)
	if err == nil {
		err = c.read()
	}
	return took, errors.Join(err, c.end())
}

var initLine = regexp.MustCompile(`^init \S+ @\S+ ms, (\S+) ms clock`)

// initTime returns how many milliseconds the guard's packages take to initialise.
func (b *bench) initTime() (float64, error) {
	cmd := exec.Command(b.guard, "version")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("running %q: %w\n%s", cmd.Args, err, &stderr)
	}
	return sumInits(&stderr)
}

func sumInits(trace io.Reader) (ms float64, err error) {
	lines := 0
	for s := bufio.NewScanner(trace); s.Scan(); {
		m := initLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, fmt.Errorf("reading the trace of inits: %w", err)
		}
		ms += v
		lines++
	}
	if lines == 0 {
		return 0, errors.New("reading the trace of inits: there is none")
	}
	return ms, nil
}
