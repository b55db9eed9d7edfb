//go:build linux || darwin

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// trial is something that must not be possible any more. Before the restriction it was tried, and was not refused in
// this way: one that is refused anyhow shows nothing.
type trial struct {
	what string
	do   func() error
	want error
}

func (t trial) held() error {
	if err := t.do(); !errors.Is(err, t.want) {
		return fmt.Errorf("trying %s: got %v, want %v", t.what, err, t.want)
	}
	return nil
}

// shown returns those that are possible here before the restriction. It is an error if none is.
func shown(list []trial) ([]trial, error) {
	possible := list[:0]
	for _, t := range list {
		if err := t.do(); !errors.Is(err, t.want) {
			possible = append(possible, t)
		}
	}
	if len(possible) == 0 {
		return nil, errors.New("nothing that can be tried here is possible before the restriction, so nothing shows whether it holds")
	}
	return possible, nil
}

// tryList lists a directory.
func tryList(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// allows reports whether a rule lets the directory be listed.
func (p Policy) allows(dir string) bool {
	want, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for _, r := range p.Rules {
		if info, err := os.Stat(r.Path); r.Access&roots.Read != 0 && err == nil && os.SameFile(info, want) {
			return true
		}
	}
	return false
}
