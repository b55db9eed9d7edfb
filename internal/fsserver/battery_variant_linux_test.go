package fsserver

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// long makes the tests whose name says so take longer, as .ci/long does.
var long = flag.Bool("long", false, "race for 30 s a case, and make trees of 1 M entries")

const (
	variantEnv = "ROOTBOUND_FS_VARIANT" // of this process, when it is one
	filterEnv  = "ROOTBOUND_FS_FILTER"  // set until the filter is in force
)

// nobody is the ordinary user that root runs the tests as, too.
const nobody = 65534

// variant is one way to run a test: which of rootfs's ways to reach a file is taken, and as whom.
type variant struct {
	name   string
	walk   bool // openat2 is not there
	osRoot bool // nothing but os.Root is there: it takes another program
	other  bool // as nobody
}

var variants = []variant{
	{name: "openat2"}, {name: "walk", walk: true}, {name: "os.Root", osRoot: true},
	{name: "openat2 as nobody", other: true}, {name: "walk as nobody", walk: true, other: true}, {name: "os.Root as nobody", osRoot: true, other: true},
}

// osRootTag takes all but os.Root out of rootfs.
const osRootTag = "rootbound_osroot"

// osRootProgram is this test program as it is on systems that have nothing but os.Root.
var osRootProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "osroot")
	if err != nil {
		return "", err
	}
	osRootDir = dir
	program := filepath.Join(dir, "fsserver.test")
	out, err := exec.Command("go", "test", "-c", "-tags", osRootTag, "-o", program, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the tests for os.Root: %w\n%s", err, out)
	}
	return program, os.Chmod(dir, 0o755)
})

// osRootDir is the directory of that, for TestMain to remove.
var osRootDir string

func TestMain(m *testing.M) {
	if how := os.Getenv(fuseEnv); how != "" {
		serveFUSE(how)
		return
	}
	if os.Getenv(filterEnv) != "" {
		os.Unsetenv(filterEnv)
		fmt.Fprintln(os.Stderr, execWithoutOpenat2())
		os.Exit(2)
	}
	code := m.Run()
	for _, dir := range []string{builtIn, osRootDir} {
		if dir != "" {
			os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// execWithoutOpenat2 starts this program again, in this process, under a filter that answers openat2 as a kernel does that
// has never heard of it.
func execWithoutOpenat2() error {
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call, first in struct seccomp_data
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT2, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("filtering openat2: %w", err)
	}
	return fmt.Errorf("starting again: %w", syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// inEveryVariant runs the test that calls it in a process of its own for each of the variants. Those of root are in a mount
// namespace of their own. What is left out is logged.
func inEveryVariant(t *testing.T, all []variant, test func(t *testing.T, v variant)) {
	name := os.Getenv(variantEnv)
	for _, v := range all {
		if name == v.name {
			if _, err := unix.Openat2(unix.AT_FDCWD, ".", &unix.OpenHow{Flags: unix.O_PATH}); (err == unix.ENOSYS) != v.walk && !v.osRoot {
				t.Fatalf("variant %s: openat2 says %v", v.name, err)
			}
			if only := builtWith("-tags", osRootTag); only != v.osRoot {
				t.Fatalf("variant %s: this program has nothing but os.Root: %v", v.name, only)
			}
			if v.other && os.Geteuid() != nobody {
				t.Fatalf("variant %s has user %d", v.name, os.Geteuid())
			}
			test(t, v)
			return
		}
	}
	if name != "" {
		t.Fatalf("there is no variant %q", name)
	}
	for _, v := range all {
		switch _, err := unix.Openat2(unix.AT_FDCWD, ".", &unix.OpenHow{Flags: unix.O_PATH}); {
		case v.other && os.Geteuid() != 0:
			t.Logf("left out: %s, which only root can become", v.name)
		case !v.walk && !v.osRoot && errors.Is(err, unix.ENOSYS):
			t.Logf("left out: %s, which this kernel has not", v.name)
		default:
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				runVariant(t, v)
			})
		}
	}
}

func runVariant(t *testing.T, v variant) {
	dir, err := os.MkdirTemp("", "fsserver")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	top, _, _ := strings.Cut(t.Name(), "/")
	program := "/proc/self/exe"
	if v.osRoot {
		if program, err = osRootProgram(); err != nil {
			t.Fatal(err)
		}
	}
	command := func(namespace uintptr) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+top+"$", "-test.v", fmt.Sprintf("-long=%v", *long))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), variantEnv+"="+v.name, "TMPDIR="+dir)
		if v.walk {
			cmd.Env = append(cmd.Env, filterEnv+"=1")
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: namespace, Pdeathsig: syscall.SIGKILL}
		if v.other {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		}
		return cmd
	}
	if v.other {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	var namespace uintptr
	if os.Geteuid() == 0 && !v.other {
		namespace = unix.CLONE_NEWNS
	}
	out, err := command(namespace).CombinedOutput()
	if errors.Is(err, unix.EPERM) && namespace != 0 {
		t.Log("left out: a mount namespace, which is not permitted here")
		out, err = command(0).CombinedOutput()
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "left out: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+top) {
		t.Errorf("%v\n%s", err, out)
	}
}
