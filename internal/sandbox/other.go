//go:build !linux && !darwin

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

var errSystem = fmt.Errorf("files: not confined: on %s nothing holds a process to directories: %w", runtime.GOOS, errors.ErrUnsupported)

// Stage is a program that is about to be started confined: none here.
type Stage struct {
	Path  string
	Args  []string
	Files []*os.File
	Attr  *syscall.SysProcAttr
}

// Parts says why nothing can be taken out of what rules open.
func Parts() error { return errSystem }

// Supported returns the level that Restrict would reach, or why it would reach none: an error that is
// errors.ErrUnsupported.
func Supported() (Level, error) { return Level{}, errSystem }

// Restrict confines this process to what the rules allow. Here it cannot: it restricts nothing, and the error is
// errors.ErrUnsupported.
func Restrict([]Rule) (Level, error) { return Level{}, errSystem }

// Able says why this system cannot confine a program to p: here, always.
func (p Policy) Able() (Level, error) { return Level{}, errSystem }

// Stage prepares the start of a program. Here it cannot be confined, and the error is errors.ErrUnsupported.
func (p Policy) Stage(string, []string, []string) (*Stage, error) { return nil, errSystem }

// Confined is never reached, for want of a Stage.
func (s *Stage) Confined() (Level, error) { return Level{}, errSystem }

// Close does nothing.
func (s *Stage) Close() {}

// Enter is what the stage does, of which there is none here.
func Enter() error { return errSystem }
