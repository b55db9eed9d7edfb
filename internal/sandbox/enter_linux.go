package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// confine restricts this thread to the policy, and tries whether it is.
func (o *order) confine() error {
	parent := os.Getppid()
	if o.Level.Parts {
		if err := o.parts(); err != nil {
			if !errors.Is(err, unix.EPERM) {
				return err
			}
			o.Level.Parts = false // somebody lets namespaces be made and nothing be mounted in them
		}
	}
	trials, err := o.trials(parent)
	if err != nil {
		return err
	}
	steps, err := o.steps(parent)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	for _, t := range trials {
		if err := t.held(); err != nil {
			return fmt.Errorf("the kernel did not hold it: %w", err)
		}
	}
	return nil
}

// step is one of the protections.
type step struct {
	name string
	do   func() error
}

// steps returns them in the order in which they can be had.
func (o *order) steps(parent int) ([]step, error) {
	filter, err := o.Policy.filter()
	if err != nil {
		return nil, fmt.Errorf("writing the filter of system calls: %w", err)
	}
	steps := []step{
		{"giving up new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"setting limits", setLimits},
		{"restricting files with Landlock", o.landlock},
		{"dropping capabilities", dropCapabilities},
		{"closing descriptors", closeDescriptors},
		{"filtering system calls", func() error { return handListener(filter, o.Policy.Net.Proxy != 0) }},
		{"dying with the guard", func() error { return dieWith(parent) }},
	}
	if o.Level.Watched { // before other calls are filtered, so that it is told of what these refuse
		raw, err := watchFilter()
		if err != nil {
			return nil, fmt.Errorf("writing the filter that watches: %w", err)
		}
		steps = slices.Insert(steps, 1, step{"watching system calls", func() error { return handListener(raw, true) }})
	}
	return steps, nil
}

func (o *order) landlock() error {
	var file, dir landlock.AccessFSSet
	if o.Policy.Unix {
		dir = unixDir
		if o.Level.Landlock >= unixSockets {
			file = unixFile
		}
	}
	// A program that runs meanwhile may be able to put a link where a directory was.
	rules, done, err := landlockRules(o.Policy.Rules, file, dir, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	defer done()
	config := o.Level.config()
	if o.Policy.Net.All {
		config.HandledAccessNet = 0
	}
	fd, flags, err := config.NewRulesetFD(rules...)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return ll.LandlockRestrictSelf(fd, flags)
}

// closeDescriptors closes all but the standard streams, when the program is run.
func closeDescriptors() error { return unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }

// handListener puts a filter in force and, if it asks, gives the guard what it needs to answer it.
func handListener(raw []bpf.RawInstruction, asks bool) error {
	listener, err := setFilter(raw, asks)
	if err != nil || listener < 0 {
		return err
	}
	defer unix.Close(listener)
	text, err := json.Marshal(report{Asks: true})
	if err != nil {
		return err
	}
	return unix.Sendmsg(3, text, unix.UnixRights(listener), nil, 0)
}

// setLimits takes away what a server has no use for. What it may use of memory, files and time is as it was.
func setLimits() error {
	for _, which := range []int{unix.RLIMIT_CORE, unix.RLIMIT_MSGQUEUE, unix.RLIMIT_RTPRIO} {
		if err := unix.Setrlimit(which, &unix.Rlimit{}); err != nil {
			return err
		}
	}
	return nil
}

// dropCapabilities leaves none, and none that a program could bring back.
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	if data[0].Effective&(1<<unix.CAP_SETPCAP) != 0 { // else no_new_privs alone keeps root from getting them back
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: an older kernel
				return err
			}
		}
		const noRoot, noAmbient = 0x03, 0xc0 // root has no capabilities by being root, and none stay over a start; both locked
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noAmbient, 0, 0, 0); err != nil {
			return err
		}
	}
	data = [2]unix.CapUserData{}
	return unix.Capset(&head, &data[0])
}

// dieWith lets the kernel kill this process with its parent, which has not ended yet.
func dieWith(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != parent {
		return errors.New("the guard has ended")
	}
	return nil
}
