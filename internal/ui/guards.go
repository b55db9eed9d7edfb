package ui

import "context"

// guardsSection is Now and Questions: what guards tell.
var guardsSection = section{name: "guards", routes: func(u *UI) {}, run: func(ctx context.Context, u *UI) { <-ctx.Done() }}
