//go:build linux && !amd64 && !arm64

package sandbox

import (
	"errors"

	"golang.org/x/net/bpf"
)

// auditArch is 0 where no filter is written.
const auditArch = 0

func (p Policy) filter() ([]bpf.RawInstruction, error) { return nil, errors.ErrUnsupported }

func setFilter([]bpf.RawInstruction) error { return errors.ErrUnsupported }
