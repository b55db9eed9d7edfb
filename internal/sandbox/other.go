//go:build !linux

package sandbox

import (
	"errors"
	"fmt"
)

var errSystem = fmt.Errorf("only Linux can do that for now: %w", errors.ErrUnsupported)

// Supported returns the level that Restrict would reach, or why it would reach none: an error that is
// errors.ErrUnsupported.
func Supported() (Level, error) { return Level{}, errSystem }

// Restrict confines this process to what the rules allow. Here it cannot: it restricts nothing, and the error is
// errors.ErrUnsupported.
func Restrict([]Rule) (Level, error) { return Level{}, errSystem }
