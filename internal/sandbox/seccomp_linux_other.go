//go:build linux && !amd64 && !arm64

package sandbox

import (
	"errors"

	"golang.org/x/net/bpf"
)

// auditArch is 0 where no filter is written.
const auditArch = 0

func (p Policy) filter() ([]bpf.RawInstruction, error) { return nil, errors.ErrUnsupported }

func setFilter([]bpf.RawInstruction, bool) (int, error) { return -1, errors.ErrUnsupported }

type connector struct {
	listener int
	port     uint16
}

func (connector) serve() {}

func (o *order) watch() error { return errWatch }

func watchFilter() ([]bpf.RawInstruction, error) { return nil, errWatch }
