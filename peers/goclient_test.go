//lint:file-ignore SA1019 What is deprecated is still spoken, and is what these tests are about.

package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/peers/script"
)

// goClient is a client on the Go SDK that drives a server through a plan, as node/client.mjs does. Its arguments are the
// revision to begin with ("" for the newest) and the server's command, or its URL.
func goClient(args []string) int {
	d := &goDriver{seen: map[string]chan any{}, cancel: map[any]func(){}}
	err := json.NewDecoder(os.Stdin).Decode(&d.plan)
	if err == nil {
		err = d.drive(args[0], args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goclient:", err)
		return 1
	}
	return 0
}

type goDriver struct {
	plan    plan
	client  *mcp.Client
	session *mcp.ClientSession

	mu     sync.Mutex
	tokens int // of progress, given so far
	asked  []any
	cancel map[any]func() // of calls that end with their first progress, by token
	seen   map[string]chan any
}

func (d *goDriver) drive(revision string, command []string) error {
	ctx := context.Background()
	opt := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			d.ask("sampling/createMessage", r.Params)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			d.ask("elicitation/create", r.Params)
			return &mcp.ElicitResult{Action: "accept", Content: d.plan.Content}, nil
		},
		ToolListChangedHandler: func(_ context.Context, r *mcp.ToolListChangedRequest) {
			d.notified("notifications/tools/list_changed", r.Params)
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			d.notified("notifications/resources/updated", r.Params)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			d.notified("notifications/message", r.Params)
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if f := d.cancel[r.Params.ProgressToken]; f != nil {
				f()
			}
		},
	}
	if d.plan.Nobody {
		opt.ElicitationHandler = nil
	}
	if d.plan.Roots != nil {
		opt.Capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	d.client = mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1.0.0"}, opt)
	d.client.AddRoots(goRoots(d.plan.Roots)...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	var transport mcp.Transport = &mcp.CommandTransport{Command: cmd}
	if strings.HasPrefix(command[0], "http") {
		transport = &mcp.StreamableClientTransport{Endpoint: command[0]}
	}
	var err error
	if d.session, err = d.client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
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
	if err := d.session.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "goclient: closing:", err) // how a server ends is its own affair
	}
	return nil
}

func goRoots(dirs []string) []*mcp.Root {
	var roots []*mcp.Root
	for _, dir := range dirs {
		roots = append(roots, &mcp.Root{URI: (&url.URL{Scheme: "file", Path: dir}).String()})
	}
	return roots
}

func (d *goDriver) ask(method string, params any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, map[string]any{"method": method, "params": params})
}

func (d *goDriver) queue(method string) chan any {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[method] == nil {
		d.seen[method] = make(chan any, 1000)
	}
	return d.seen[method]
}

func (d *goDriver) notified(method string, params any) { d.queue(method) <- params }

type outcome = map[string]any

// run runs one step. What a result is called does not matter: it is compared with that of another run of this client.
func (d *goDriver) run(ctx context.Context, s step) outcome {
	switch s.Do {
	case "list":
		return d.list(ctx)
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
		outs := make([]outcome, len(s.Steps))
		var wg sync.WaitGroup
		for i := range s.Steps {
			wg.Go(func() { outs[i] = d.run(ctx, s.Steps[i]) })
		}
		wg.Wait()
		return outcome{"outcomes": outs}
	case "roots":
		old := d.plan.Roots
		d.plan.Roots = s.Roots
		var uris []string
		for _, r := range goRoots(old) {
			uris = append(uris, r.URI)
		}
		d.client.RemoveRoots(uris...)
		d.client.AddRoots(goRoots(s.Roots)...)
		return outcome{}
	case "await":
		return outcome{"method": s.Notification, "params": <-d.queue(s.Notification)}
	case "listen":
		return outcome{} // the SDK listens when there is a handler
	case "level":
		return result(nil, d.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(s.Log)}))
	case "read":
		return result(d.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: s.URI}))
	case "subscribe":
		return result(nil, d.session.Subscribe(ctx, &mcp.SubscribeParams{URI: s.URI}))
	case "prompt":
		args := map[string]string{}
		for k, v := range s.Arguments {
			args[k] = fmt.Sprint(v)
		}
		return result(d.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: s.Prompt, Arguments: args}))
	case "complete":
		var p mcp.CompleteParams
		b, _ := json.Marshal(s.Arguments)
		if err := json.Unmarshal(b, &p); err != nil {
			return result(nil, err)
		}
		return result(d.session.Complete(ctx, &p))
	}
	return result(nil, fmt.Errorf("unknown step %q", s.Do))
}

func (d *goDriver) list(ctx context.Context) outcome {
	has := d.session.InitializeResult().Capabilities
	out := outcome{"capabilities": has}
	if has.Tools != nil {
		out["tools"] = result(d.session.ListTools(ctx, nil))
	}
	if has.Prompts != nil {
		out["prompts"] = result(d.session.ListPrompts(ctx, nil))
	}
	if has.Resources != nil {
		out["resources"] = result(d.session.ListResources(ctx, nil))
		out["templates"] = result(d.session.ListResourceTemplates(ctx, nil))
	}
	return out
}

func (d *goDriver) call(ctx context.Context, s step) outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &mcp.CallToolParams{Name: s.Tool, Arguments: s.Arguments, Meta: mcp.Meta{}}
	if s.Arguments == nil {
		p.Arguments = map[string]any{}
	}
	if s.Log != "" {
		p.Meta["io.modelcontextprotocol/logLevel"] = s.Log
	}
	if s.Progress {
		d.mu.Lock()
		d.tokens++
		token := fmt.Sprintf("p%d", d.tokens)
		if s.Cancel {
			d.cancel[token] = cancel
		}
		d.mu.Unlock()
		p.SetProgressToken(token)
	}
	return result(d.session.CallTool(ctx, p))
}

func result(v any, err error) outcome {
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		return outcome{"error": wire}
	case err != nil:
		return outcome{"error": err.Error()}
	}
	return outcome{"result": v}
}
