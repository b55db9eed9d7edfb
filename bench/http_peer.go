package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const lanePeer = "mcp-proxy, a session, server on stdio"

// httpPeer measures the guard before a server on stdio against another program that brings such a server to clients over HTTP. That one has a process
// of the server for all its clients; so has the guard for those of 2026-07-28, and for sessions one for each.
func httpPeer(b *bench) ([]result, error) {
	program := filepath.Join(b.repo, "peers", "node_modules", "mcp-proxy", "dist", "bin", "mcp-proxy.mjs")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("finding mcp-proxy, which .ci/peers installs: %w", err)
	}
	var lanes []*httpLane
	defer func() {
		for _, l := range lanes {
			l.end()
		}
	}()
	guarded := func(server string) func(name string) (*httpLane, error) {
		return func(name string) (*httpLane, error) {
			return b.listen(name, append(b.guardedBy("log", "--listen", "127.0.0.1:0", "--max-sessions", strconv.Itoa(loadClients+1)), server)...)
		}
	}
	for _, o := range []struct {
		name  string
		start func(name string) (*httpLane, error)
	}{
		{laneSession, guarded("echo")},
		{laneStateless, guarded("echo-stateless")},
		{lanePeer, func(name string) (*httpLane, error) {
			port, err := freePort()
			if err != nil {
				return nil, err
			}
			return b.listenAt(name, "http://127.0.0.1:"+port+"/mcp", "node", program, "--host", "127.0.0.1", "--port", port, "--server", "stream", "--", b.self, "echo")
		}},
	} {
		l, err := o.start(o.name)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
		if err := l.prepare(newCall(1<<10, ""), o.name == laneStateless); err != nil {
			return nil, err
		}
	}
	id := firstID + httpCalls
	for range httpRounds {
		for _, l := range lanes {
			if err := l.block(id, httpCalls); err != nil {
				return nil, err
			}
			id += 2 * httpCalls
		}
	}
	for range loadRounds {
		for _, l := range lanes {
			if err := l.load(id); err != nil {
				return nil, err
			}
			id += loadClients * loadCalls
		}
	}
	peer := lanes[2]
	var results []result
	for _, l := range lanes {
		results = append(results, summary(l.name, "µs", scaled(l.p50, 1e6)), summary(fmt.Sprintf("%s, %d clients at once", l.name, loadClients), "calls/s", l.rate))
	}
	for _, l := range lanes[:2] {
		pair := l.name + " ÷ mcp-proxy, time of a call"
		rate := ratio(fmt.Sprintf("%s with %d clients at once", pair, loadClients), peer.rate, l.rate)
		if l.name == laneStateless { // which has as many processes as the peer
			rate = rate.within(1.0 / 3)
		}
		results = append(results, ratio(pair, l.p50, peer.p50), rate)
	}
	return results, nil
}

// freePort is a port on which nobody listens now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// listenAt starts a command that does not say where it listens, but was told.
func (b *bench) listenAt(name, url string, args ...string) (*httpLane, error) {
	l := b.httpLane(name, args...)
	l.url, l.cmd.Stderr = url, io.Discard
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	for range 400 {
		if _, _, _, err := l.post(l.header, []byte("{}")); err == nil {
			return l, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("%s does not listen at %s", name, url), l.end())
}
