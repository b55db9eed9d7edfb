package verify

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Looked is what a server shows of itself before anything is tried.
type Looked struct {
	// Name and Version are what it calls itself.
	Name, Version string
	// Asked counts how often it asked for roots by itself, AskedAgain whether it did after a change. Of a stateless server,
	// which asks only in a call, neither is known: Stateless is set.
	Asked      int
	AskedAgain bool
	Stateless  bool
	Tools      []LookedTool
}

// LookedTool is a tool as it is listed.
type LookedTool struct {
	Name string
	// ReadOnly is set when it says that it only reads.
	ReadOnly bool
	// Params are the names of its parameters.
	Params []string
}

var errNoHandshake = errors.New("it answers neither initialize nor server/discover")

// settleLook is how long a server is given to ask for roots by itself.
const settleLook = time.Second

// Look starts a server, shakes hands with it as a client that has roots, and lists its tools. No tool is called.
func Look(ctx context.Context, start func(ctx context.Context, era exchange.Era) (Running, error), roots ...string) (Looked, error) {
	var l Looked
	p, r, err := connect(ctx, start, exchange.Legacy, peerOptions{roots: uris(roots...)})
	if err == nil && !r.ok() {
		p.close()
		l.Stateless = true
		p, r, err = connect(ctx, start, exchange.Modern, peerOptions{roots: uris(roots...)})
	}
	if err != nil {
		return l, err
	}
	defer p.close()
	if !r.ok() {
		return l, errNoHandshake
	}
	info, _ := wire.Get(r.result, "serverInfo")
	l.Name, l.Version = wire.GetString(info, "name"), wire.GetString(info, "version")
	l.Tools = lookedTools(p.listAll("tools/list", "tools").items)
	if l.Stateless {
		return l, nil
	}
	until(settleLook, func() bool { return p.looked().asked > 0 })
	l.Asked = p.looked().asked
	if l.Asked > 0 {
		p.setRoots(uris(roots...)...)
		until(settleLook, func() bool { return p.looked().askedChanged > 0 })
		l.AskedAgain = p.looked().askedChanged > 0
	}
	return l, nil
}

func lookedTools(tools []byte) []LookedTool {
	var list []LookedTool
	for t := range wire.Items(tools) {
		tool := LookedTool{Name: wire.GetString(t, "name")}
		hint, _ := wire.Get(t, "annotations", "readOnlyHint")
		tool.ReadOnly = string(hint) == "true"
		properties, _ := wire.Get(t, "inputSchema", "properties")
		for name := range wire.Members(properties) {
			tool.Params = append(tool.Params, name)
		}
		slices.Sort(tool.Params)
		list = append(list, tool)
	}
	return list
}
