//go:build unix

package fsserver

import (
	"context"
	"io"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// Each transcript is one client on one stream. ${root} is the directory that it may reach.
func TestTranscripts(t *testing.T) {
	mcptest.Transcripts(t, "testdata/*.txtar", func(t *testing.T, tr mcptest.Transcript) {
		root := makeDirs(t, "root")[0]
		set := roots.NewSet(resolve(t, root, roots.ReadOnly))
		inRoot := func(next exchange.Handler) exchange.Handler {
			return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
				c := *r
				c.Roots = set
				next.Handle(ctx, &c, reply)
			})
		}
		report := func(err error) { t.Error(err) }
		handler := exchange.Chain(exchange.Checked(newServer(t), report), inRoot)
		quoted := quoteJSON(root)
		names := map[string]string{"root": quoted[1 : len(quoted)-1]}
		tr.Play(t, names, func(t *testing.T, _, _ []string) (io.WriteCloser, io.Reader) {
			in, stdin := io.Pipe()
			stdout, out := io.Pipe()
			go func() {
				out.CloseWithError(transport.ServeStdio(t.Context(), in, out, handler, transport.StdioOptions{}))
			}()
			return stdin, stdout
		})
	})
}
