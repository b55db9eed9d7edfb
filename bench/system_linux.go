package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pipe returns a pipe whose ends are blocking, unlike those of os.Pipe.
func pipe() (r, w *os.File, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(p[0]), "pipe"), os.NewFile(uintptr(p[1]), "pipe"), nil
}

// onOneCPU runs f on a thread that is bound to one CPU, as is every process that f starts.
func onOneCPU(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		done <- func() error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil {
				return os.NewSyscallError("sched_getaffinity", err)
			}
			cpu := 0
			for !set.IsSet(cpu) {
				cpu++
			}
			set.Zero()
			set.Set(cpu)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				return os.NewSyscallError("sched_setaffinity", err)
			}
			return f()
		}()
	}()
	return <-done
}

// memoryOf reads what the kernel says of a process.
func memoryOf(pid int) (usage, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	defer f.Close()
	kB := map[string]float64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok {
			kB[name], _ = strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		}
	}
	u := usage{anon: kB["RssAnon"] * 1024 / 1e6, resident: kB["VmRSS"] * 1024 / 1e6, peak: kB["VmHWM"] * 1024 / 1e6}
	if u.resident == 0 {
		return usage{}, fmt.Errorf("reading %s: no resident memory in it", f.Name())
	}
	return u, nil
}

// load is how much ran in the last minute, in CPUs.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
