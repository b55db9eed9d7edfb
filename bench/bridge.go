package main

import (
	"bytes"
	"slices"
)

const (
	laneLegacy = "a session with a server that shakes hands"
	laneModern = "2026-07-28 with a server of 2026-07-28"
	laneDown   = "2026-07-28 with a server that shakes hands"
	laneUp     = "a session with a server of 2026-07-28"
)

// stateless returns a call as a client of 2026-07-28 writes it. Its answer says more, but no less.
func (p *call) stateless() *call {
	return &call{
		request: bytes.Replace(p.request, []byte(`"params":{`), []byte(`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`), 1),
		answer:  p.answer,
	}
}

// bridgeCase measures calls between a client and a server of different eras, beside calls between those of one.
func bridgeCase(b *bench) (results []result, err error) {
	plain := newCall(1<<10, "")
	var lanes []*lane
	defer func() { endAll(lanes) }()
	p50 := map[string][]float64{}
	err = onOneCPU(func() error {
		for _, l := range []struct {
			name, server, protocol string
			stateless              bool // the client
		}{
			{laneLegacy, "echo", "legacy", false},
			{laneModern, "echo-stateless", "modern", true},
			{laneDown, "echo", "legacy", true},
			{laneUp, "echo-stateless", "modern", false},
		} {
			args := append(b.guardedBy("log", "--server-protocol", l.protocol), l.server)
			start, c := b.startChain, plain
			if l.stateless {
				start, c = b.startStateless, plain.stateless()
			}
			chain, err := start(l.name, false, args...)
			if err != nil {
				return err
			}
			lanes = append(lanes, &lane{chain: chain, call: c})
		}
		return takeTurns(slices.Clone(lanes), 15, 1000)
	})
	if err != nil {
		return nil, err
	}
	for _, l := range lanes {
		p50[l.name] = l.p50
		results = append(results, summary(l.name, "µs", scaled(l.p50, 1e6)))
	}
	for _, p := range [][2]string{{laneDown, laneModern}, {laneUp, laneLegacy}} {
		results = append(results, ratio(p[0]+" ÷ "+p[1], p50[p[0]], p50[p[1]]).within(1.3))
	}
	return results, nil
}
