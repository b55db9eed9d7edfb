package transport

import "fmt"

// NotStarted is how a server ends that nobody could have started.
func NotStarted(program string, why error) *ExitError {
	return &ExitError{Code: 1, State: fmt.Sprintf("starting the server %q: %v", program, why), unstarted: true}
}
