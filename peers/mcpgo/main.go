// Mcpgo is a client or a server on mcp-go, from hands other than those of the SDKs of the protocol's own project.
//
//	mcpgo client REVISION COMMAND ARGS… < plan.json    REVISION "" is the newest; in place of a command there may be a URL
//	mcpgo server [http]                                on stdio, or over HTTP; then it prints where
//
// What a plan is, and what is printed of each step, package script says. The server's tools are those of goserver_test.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rootbound/rootbound/peers/script"
)

func main() {
	err := fmt.Errorf("usage: mcpgo client REVISION COMMAND… | mcpgo server [http]")
	switch args := os.Args[1:]; {
	case len(args) > 2 && args[0] == "client":
		err = drive(args[1], args[2:])
	case len(args) > 0 && args[0] == "server":
		err = serve(args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcpgo:", err)
		os.Exit(1)
	}
}

type object = map[string]any

// driver is the client, and what it answers when it is asked.
type driver struct {
	client *client.Client

	mu     sync.Mutex
	plan   script.Plan
	asked  []any
	tokens int
	cancel map[any]func() // of calls that end with their first progress, by token
	seen   map[string]chan any
}

func drive(revision string, command []string) error {
	ctx := context.Background()
	d := &driver{cancel: map[any]func(){}, seen: map[string]chan any{}}
	if err := json.NewDecoder(os.Stdin).Decode(&d.plan); err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	var way transport.Interface = transport.NewStdio(command[0], os.Environ(), command[1:]...)
	if strings.HasPrefix(command[0], "http") {
		http, err := transport.NewStreamableHTTP(command[0])
		if err != nil {
			return err
		}
		way = http
	}
	options := []client.ClientOption{client.WithSamplingHandler(d), client.WithProtocolVersion(revision)}
	if !d.plan.Nobody {
		options = append(options, client.WithElicitationHandler(d))
	}
	if d.plan.Roots != nil {
		options = append(options, client.WithRootsHandler(d))
	}
	d.client = client.NewClient(way, options...)
	d.client.OnNotification(d.notified)
	if err := d.client.Start(ctx); err != nil {
		return err
	}
	if stderr, ok := client.GetStderr(d.client); ok {
		go func() {
			for b := make([]byte, 4096); ; {
				n, err := stderr.Read(b)
				os.Stderr.Write(b[:n])
				if err != nil {
					return
				}
			}
		}()
	}
	if _, err := d.client.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ClientInfo: mcp.Implementation{Name: "peers", Version: "1.0.0"},
	}}); err != nil {
		return err
	}
	for _, s := range d.plan.Steps {
		d.mu.Lock()
		d.asked = []any{}
		d.mu.Unlock()
		out := d.run(ctx, s)
		d.mu.Lock()
		out["asked"] = d.asked
		d.mu.Unlock()
		if err := script.Print(os.Stdout, out); err != nil {
			return err
		}
	}
	if err := d.client.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "mcpgo: closing:", err) // how a server ends is its own affair
	}
	return nil
}

func (d *driver) ask(method string, params any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, object{"method": method, "params": params})
}

// ListRoots implements client.RootsHandler.
func (d *driver) ListRoots(_ context.Context, r mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	d.ask("roots/list", object{})
	d.mu.Lock()
	defer d.mu.Unlock()
	result := &mcp.ListRootsResult{Roots: []mcp.Root{}}
	for _, dir := range d.plan.Roots {
		result.Roots = append(result.Roots, mcp.Root{URI: (&url.URL{Scheme: "file", Path: dir}).String()})
	}
	return result, nil
}

// Elicit implements client.ElicitationHandler.
func (d *driver) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	d.ask("elicitation/create", r.Params)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: d.plan.Content,
	}}, nil
}

// CreateMessage implements client.SamplingHandler.
func (d *driver) CreateMessage(_ context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	d.ask("sampling/createMessage", r.CreateMessageParams)
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("sampled")}, Model: "none",
	}, nil
}

func (d *driver) queue(method string) chan any {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[method] == nil {
		d.seen[method] = make(chan any, 1000)
	}
	return d.seen[method]
}

func (d *driver) notified(n mcp.JSONRPCNotification) {
	if n.Method == "notifications/progress" {
		d.mu.Lock()
		cancel := d.cancel[n.Params.AdditionalFields["progressToken"]]
		d.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return
	}
	d.queue(n.Method) <- n.Params
}

// run runs one step. What a result is called does not matter: it is compared with that of another run of this client.
func (d *driver) run(ctx context.Context, s script.Step) object {
	switch s.Do {
	case "list":
		return result(d.client.ListTools(ctx, mcp.ListToolsRequest{}))
	case "call":
		return d.call(ctx, s)
	case "until":
		for {
			out := d.call(ctx, s)
			if b, _ := json.Marshal(out); out["error"] != nil || strings.Contains(string(b), s.Text) {
				return out
			}
		}
	case "parallel":
		outs := make([]object, len(s.Steps))
		var wg sync.WaitGroup
		for i := range s.Steps {
			wg.Go(func() { outs[i] = d.run(ctx, s.Steps[i]) })
		}
		wg.Wait()
		return object{"outcomes": outs}
	case "roots":
		d.mu.Lock()
		d.plan.Roots = s.Roots
		d.mu.Unlock()
		if mcp.IsModernProtocol(d.client.ProtocolVersion()) {
			return object{}
		}
		return result(nil, d.client.RootListChanges(ctx))
	case "await":
		return object{"method": s.Notification, "params": <-d.queue(s.Notification)}
	case "listen":
		if !mcp.IsModernProtocol(d.client.ProtocolVersion()) {
			return object{}
		}
		_, err := d.client.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, nil)
		return result(nil, err)
	}
	return result(nil, fmt.Errorf("unknown step %q", s.Do))
}

func (d *driver) call(ctx context.Context, s script.Step) object {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := mcp.CallToolParams{Name: s.Tool, Arguments: s.Arguments}
	if s.Arguments == nil {
		p.Arguments = object{}
	}
	if s.Progress {
		d.mu.Lock()
		d.tokens++
		token := fmt.Sprintf("p%d", d.tokens)
		if s.Cancel {
			d.cancel[token] = cancel
		}
		d.mu.Unlock()
		p.Meta = &mcp.Meta{ProgressToken: token}
	}
	return result(d.client.CallTool(ctx, mcp.CallToolRequest{Params: p}))
}

func result(v any, err error) object {
	if err != nil {
		return object{"error": err.Error()}
	}
	return object{"result": v}
}
