package cli

import "context"

// starter returns what never returns: on Windows, Node ends what it started with itself, by a job object.
func starter() (wait func()) { return func() { <-context.Background().Done() } }
