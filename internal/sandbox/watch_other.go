//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"errors"
	"fmt"
	"runtime"
)

var errWatch = fmt.Errorf("a program can be watched on Linux, on amd64 and arm64, and this is %s on %s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)

// Able says why a program cannot be watched here.
func (w Watch) Able() (Level, error) { return Level{}, errWatch }

// Stage prepares the start of a program. Here it cannot be watched, and the error is errors.ErrUnsupported.
func (w Watch) Stage(string, []string, []string) (*Stage, error) { return nil, errWatch }
