package cli

import "context"

// waitForStarter never returns: on Windows, Node ends what it started with itself, by a job object.
func waitForStarter() { <-context.Background().Done() }
