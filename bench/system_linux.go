package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

// readDirectories opens each directory, reads all of it as the kernel gives it and closes it, and nothing else, by so many
// threads at once: what no program can list them without.
func readDirectories(dirs []string, threads int) (time.Duration, error) {
	var next atomic.Int64
	errs := make([]error, threads)
	var all sync.WaitGroup
	began := time.Now()
	for n := range threads {
		all.Go(func() {
			buf := make([]byte, 256<<10)
			for i := next.Add(1) - 1; i < int64(len(dirs)); i = next.Add(1) - 1 {
				fd, err := unix.Open(dirs[i], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				for err == nil {
					var got int
					if got, err = unix.Getdents(fd, buf); got == 0 {
						break
					}
				}
				if err = errors.Join(err, unix.Close(fd)); err != nil {
					errs[n] = os.NewSyscallError("reading "+dirs[i], err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began), errors.Join(errs...)
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

// unmount takes away what may be mounted there.
func unmount(path string) { unix.Unmount(path, unix.MNT_DETACH) }
