//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// A guard of the tests is a copy of the test program, because guard and server have to belong to the same user, also
// where that is another one than the test's. It does what this variable says.
const guardVariable = "ROOTBOUND_TEST_GUARD"

type guardOrder struct {
	Policy  Policy
	Program string
	Args    []string
	// ABI is the version of Landlock that is taken; 0 is the kernel's.
	ABI int
	// Only are the steps that are taken; nil is all, with everything that makes sure.
	Only []string
	// Plain starts the program as it is.
	Plain bool
	// Masked hides Landlock: from the guard, as an old kernel or container does, or only from the stage. Errno is what the
	// kernel seems to answer; Version, if not 0, is the version that it seems to have.
	Masked  string
	Errno   syscall.Errno
	Version int
	// Watch is a directory: the program is watched, and what it does beneath it is printed.
	Watch string
	// Held has it be held to the policy meanwhile.
	Held bool
	// Leak is a file that the guard has open, without care, when it starts the program.
	Leak string
}

// onlyVariable holds the steps for a stage of the tests.
const onlyVariable = "ROOTBOUND_TEST_STEPS"

// asGuard returns the exit code of the program.
func asGuard(text string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	var o guardOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fail(err)
	}
	if o.Watch != "" {
		if err := asWatcher(o); err != nil {
			return fail(err)
		}
		return 0
	}
	args := append([]string{o.Program}, o.Args...)
	if o.Leak != "" {
		fd, err := unix.Open(o.Leak, unix.O_RDONLY, 0)
		if err != nil {
			return fail(err)
		}
		const leaked = 200 // a number that nothing else gets
		if err := unix.Dup3(fd, leaked, 0); err != nil {
			return fail(err)
		}
		args = append(args, strconv.Itoa(leaked))
	}
	runtime.LockOSThread() // the server dies with the thread that started it
	cmd := &exec.Cmd{Path: o.Program, Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: []string{}}
	if o.Plain {
		cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	if o.Masked == "guard" || o.Masked == "filters" {
		call := uint32(unix.SYS_LANDLOCK_CREATE_RULESET)
		if o.Masked == "filters" {
			call = unix.SYS_SECCOMP
		}
		if err := mask(call, o.Errno, o.Version); err != nil {
			return fail(err)
		}
	}
	s, err := o.Policy.Stage(o.Program, args, []string{"HOME=/nowhere"})
	if err != nil {
		return fail(err)
	}
	if o.ABI != 0 {
		s.order.Level.Landlock = o.ABI
	}
	if o.Only != nil {
		cmd.Env = []string{onlyVariable + "=" + strings.Join(o.Only, ",")}
	}
	if o.Masked == "stage" {
		if err := mask(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS, 0); err != nil {
			return fail(err)
		}
	}
	cmd.Path, cmd.Args, cmd.ExtraFiles, cmd.SysProcAttr = s.Path, s.Args, s.Files, s.Attr
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	level, err := s.Confined()
	if err != nil {
		cmd.Wait()
		return fail(err)
	}
	fmt.Println(level)
	cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// asStage is Enter, or where the test says so, Enter without most of it.
func asStage() error {
	only := os.Getenv(onlyVariable)
	if only == "" {
		return Enter()
	}
	runtime.LockOSThread()
	conn := os.NewFile(3, "stage")
	o, err := readOrder(conn)
	if err != nil {
		return err
	}
	steps, err := o.steps(os.Getppid())
	if err != nil {
		return err
	}
	for _, s := range steps {
		if slices.Contains(strings.Split(only, ","), s.name) {
			if err := s.do(); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	if err := json.NewEncoder(conn).Encode(report{Level: o.Level}); err != nil {
		return err
	}
	unix.CloseOnExec(3)
	return syscall.Exec(o.Path, o.Args, o.Env)
}

// run runs a guard as the user, and returns what was printed and the exit code.
func run(t *testing.T, uid int, o guardOrder) (string, string, int) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0", guardVariable + "=" + string(text)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// users are those that a test runs as: an ordinary one and, when the tests run as root, root too.
func users() map[string]int {
	if os.Getuid() == 0 {
		return map[string]int{"root": 0, "user": 65534}
	}
	return map[string]int{"user": os.Getuid()}
}

// world is where a probe plays: a directory inside, one outside, and servers outside.
type world struct {
	top, probe         string
	tcp, udp, abstract string
	proxy              string
}

func newWorld(t *testing.T, probe string, uid int) world {
	t.Helper()
	top, err := os.MkdirTemp("", "rootbound-world")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Unmount(filepath.Join(top, "in/sub"), unix.MNT_DETACH) // where an unconfined probe of root could mount
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	w := world{top: top, probe: filepath.Join(top, "probe"), abstract: filepath.Base(top)}
	for _, dir := range []string{"in", "in/sub", "in/empty", "out"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"in/file", "out/file", "out/other", "out/gone", "out/mine", "out/second"} {
		if err := os.WriteFile(filepath.Join(top, file), []byte(filepath.Dir(file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink("../out/file", filepath.Join(top, "in/link"))
	os.Link(filepath.Join(top, "out/second"), filepath.Join(top, "in/hard"))
	if err := os.Link(probe, w.probe); err != nil {
		t.Fatal(err)
	}
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		return l
	}
	packets := func(network, address string) net.PacketConn {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	_, w.tcp, _ = net.SplitHostPort(listen("tcp", "127.0.0.1:0").Addr().String())
	_, w.proxy, _ = net.SplitHostPort(listen("tcp", "127.0.0.1:0").Addr().String())
	_, w.udp, _ = net.SplitHostPort(packets("udp", "127.0.0.1:0").LocalAddr().String())
	listen("unix", filepath.Join(top, "out/server"))
	packets("unixgram", filepath.Join(top, "out/datagrams"))
	listen("unix", "@"+w.abstract)
	err = filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != w.probe {
			err = os.Lchown(path, uid, uid)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) order() guardOrder {
	return guardOrder{
		Policy: Policy{Rules: []Rule{
			{Path: filepath.Join(w.top, "in"), Access: roots.ReadWrite},
			{Path: w.probe, Access: roots.Read, Execute: true},
			{Path: "/proc/self/fd", Access: roots.Read},
		}},
		Program: w.probe, Args: []string{filepath.Join(w.top, "in"), filepath.Join(w.top, "out"), w.tcp, w.udp, w.abstract, w.proxy},
		Leak: filepath.Join(w.top, "out/second"),
	}
}

// buildProbe builds the probe without anything that it would have to load.
func buildProbe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the probe: %v\n%s", err, out)
	}
	return path
}

const (
	stepLandlock     = "restricting files with Landlock"
	stepSeccomp      = "filtering system calls"
	stepCapabilities = "dropping capabilities"
	stepPrivileges   = "giving up new privileges"
	stepDescriptors  = "closing descriptors"
)

// What each layer stops, as root and as an ordinary user, and what a hostile program can do without and with all of them.
func TestProbes(t *testing.T) {
	needLandlock(t)
	level, _ := Supported()
	if level.Landlock < 7 {
		t.Skip("the tables are for version 7 and the older ones it can do as if")
	}
	probe := buildProbe(t)
	columns := []struct {
		name string
		set  func(*guardOrder)
	}{
		{"nothing", func(o *guardOrder) { o.Plain = true }},
		{"landlock 3", func(o *guardOrder) { o.Only = []string{stepPrivileges, stepLandlock}; o.ABI = 3 }},
		{"landlock 7", func(o *guardOrder) { o.Only = []string{stepPrivileges, stepLandlock}; o.ABI = 7 }},
		{"seccomp", func(o *guardOrder) { o.Only = []string{stepPrivileges, stepSeccomp} }},
		{"no caps", func(o *guardOrder) { o.Only = []string{stepPrivileges, stepCapabilities} }},
		{"descriptors", func(o *guardOrder) { o.Only = []string{stepDescriptors} }},
		{"all, abi 3", func(o *guardOrder) { o.ABI = 3 }},
		{"all, abi 5", func(o *guardOrder) { o.ABI = 5 }},
		{"all, abi 7", func(o *guardOrder) { o.ABI = 7 }},
		{"net all", func(o *guardOrder) { o.ABI = 7; o.Policy.Net.All = true }},
		{"net proxy", func(o *guardOrder) {
			o.ABI = 7
			port, _ := strconv.ParseUint(o.Args[5], 10, 16)
			o.Policy.Net.Proxy = uint16(port)
		}},
		{"unix", func(o *guardOrder) { o.ABI = 7; o.Policy.Unix = true }},
	}
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			results := map[string][]string{}
			var attempts []string
			for _, c := range columns {
				w := newWorld(t, probe, uid)
				o := w.order()
				c.set(&o)
				stdout, stderr, code := run(t, uid, o)
				if code != 0 {
					t.Fatalf("%s: exit code %d\n%s%s", c.name, code, stdout, stderr)
				}
				for line := range strings.Lines(stdout) {
					what, result, ok := strings.Cut(strings.TrimSpace(line), ": ")
					if !ok || strings.HasPrefix(what, "confined") {
						continue
					}
					if results[what] == nil {
						attempts = append(attempts, what)
					}
					results[what] = append(results[what], result)
				}
			}
			var names []string
			for _, c := range columns {
				names = append(names, c.name)
			}
			got := table(names, attempts, results)
			golden := filepath.Join("testdata", "probes-"+name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(comparable(string(want), got), comparable(got, got)); diff != "" {
				t.Errorf("what is possible (-want +got):\n%s", diff)
			}
		})
	}
}

// mask lets this thread and what it starts see no Landlock, but the error, or a version of it.
func mask(call uint32, errno syscall.Errno, version int) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	answer := refuse(errno)
	if version != 0 {
		answer = ask
	}
	p := program{bpf.LoadAbsolute{Off: dataNumber, Size: 4}}
	p.when(call, end(answer))
	raw, err := bpf.Assemble(append(p, end(allow)...))
	if err != nil {
		return err
	}
	listener, err := setFilter(raw, version != 0)
	if err != nil || version == 0 {
		return err
	}
	go func() { // on another thread, which sees the kernel as it is
		c := connector{listener: listener}
		for {
			var n notification
			if err := c.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err == nil {
				c.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response{id: n.id, val: int64(version)}))
			}
		}
	}()
	return nil
}

const width, first = 18, 45

func table(columns, attempts []string, results map[string][]string) string {
	var b strings.Builder
	row := func(head string, cells []string) {
		line := fmt.Sprintf("%-*s", first, head)
		for _, c := range cells {
			line += fmt.Sprintf("%-*s", width, c)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("attempt", columns)
	for _, what := range attempts {
		row(what, results[what])
	}
	return b.String()
}

// comparable leaves out of a table the cells that say nothing here: those of single layers, where what is tried is
// not even possible without them on this machine.
func comparable(text, here string) []string {
	impossible := map[string]bool{}
	for line := range strings.Lines(here) {
		impossible[strings.TrimSpace(line[:first])] = !strings.HasPrefix(line[first:], "yes")
	}
	const single = first + 6*width
	var lines []string
	for line := range strings.Lines(text) {
		if what := strings.TrimSpace(line[:first]); impossible[what] && what != "attempt" {
			line = line[:first] + line[single:]
		}
		lines = append(lines, line)
	}
	return lines
}

var long = flag.Bool("long", false, "let the racy server race for 30 s")

// A server that loses the race between looking and opening when it is not confined loses none when it is.
func TestARacyServer(t *testing.T) {
	needLandlock(t)
	w := newWorld(t, buildProbe(t), os.Getuid())
	o := w.order()
	duration := "2s"
	if *long {
		duration = "30s"
	}
	o.Leak = ""
	for _, plain := range []bool{true, false} {
		win := "for a while"
		if plain {
			win = "until it wins"
		}
		o.Args, o.Plain = []string{"race", filepath.Join(w.top, "in"), duration, win}, plain
		stdout, stderr, code := run(t, os.Getuid(), o)
		_, counts, _ := strings.Cut(stdout, "read inside: ")
		var inside, outside int
		if n, err := fmt.Sscanf(counts, "%d\nread outside: %d\n", &inside, &outside); n != 2 || code != 0 {
			t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
		}
		if inside == 0 || (outside > 0) != plain {
			t.Errorf("confined: %v, and in %s it read %d times inside and %d times outside", !plain, duration, inside, outside)
		}
	}
}

// However a guard ends, its confined server ends with it.
func TestTheServerDiesWithItsGuard(t *testing.T) {
	needLandlock(t)
	w := newWorld(t, buildProbe(t), os.Getuid())
	o := w.order()
	o.Args, o.Leak = []string{"wait"}, ""
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	guard := exec.Command("/proc/self/exe")
	guard.Env = []string{"GORACE=atexit_sleep_ms=0", guardVariable + "=" + string(text)}
	out, err := guard.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if strings.HasPrefix(line, "confined") && err == nil {
		line, err = lines.ReadString('\n')
	}
	if !strings.HasPrefix(line, "waiting in ") || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	guard.Process.Kill()
	// The server holds the other end of this pipe: it ends when the server does.
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error(err)
	}
	guard.Wait()
}

// Where the kernel does not do its part, nothing is started, and the error says why.
func TestNothingIsStartedUnconfined(t *testing.T) {
	needLandlock(t)
	probe := buildProbe(t)
	type test struct {
		name string
		set  func(*guardOrder)
		want string
	}
	tests := []test{
		{"an old kernel, or gVisor", func(o *guardOrder) { o.Masked, o.Errno = "guard", unix.ENOSYS }, "this kernel has no Landlock, or a container hides it (function not implemented): unsupported operation"},
		{"an old container", func(o *guardOrder) { o.Masked, o.Errno = "guard", unix.EPERM }, "this kernel has no Landlock, or a container hides it (operation not permitted): unsupported operation"},
		{"Landlock switched off", func(o *guardOrder) { o.Masked, o.Errno = "guard", unix.EOPNOTSUPP }, "this kernel has Landlock switched off (its parameter lsm= does not name it): unsupported operation"},
		{"version 1", func(o *guardOrder) { o.Masked, o.Version = "guard", 1 }, "the Landlock of this kernel is too old (1, and 3 is needed): unsupported operation"},
		{"version 2", func(o *guardOrder) { o.Masked, o.Version = "guard", 2 }, "the Landlock of this kernel is too old (2, and 3 is needed): unsupported operation"},
		{"a container without seccomp", func(o *guardOrder) { o.Masked, o.Errno = "filters", unix.EPERM }, "this kernel filters no system calls, or a container keeps that from programs (operation not permitted): unsupported operation"},
		{"no Landlock in the stage", func(o *guardOrder) { o.Masked = "stage" }, "confining the program: restricting files with Landlock: "},
		{"a root that is gone", func(o *guardOrder) {
			o.Policy.Rules = append(o.Policy.Rules, Rule{Path: "/nowhere", Access: roots.ReadOnly})
		}, `confining the process to "/nowhere": no such file or directory`},
		{"a root that became a link", func(o *guardOrder) {
			in := o.Policy.Rules[0].Path
			os.Symlink("../out", filepath.Join(in, "later"))
			o.Policy.Rules = append(o.Policy.Rules, Rule{Path: filepath.Join(in, "later"), Access: roots.ReadOnly})
		}, `: a link is on the way to it: too many levels of symbolic links`},
		{"a program that may not be run", func(o *guardOrder) { o.Policy.Rules = o.Policy.Rules[:1] }, ": permission denied"},
	}
	if level, _ := Supported(); level.Landlock < 10 { // the one that can forbid UDP
		tests = append(tests, tests[slices.IndexFunc(tests, func(tt test) bool { return tt.name == "no Landlock in the stage" })])
		newer := &tests[len(tests)-1]
		newer.name, newer.set = "a version that the kernel has not", func(o *guardOrder) { o.ABI = 10 }
	}
	for _, tt := range tests {
		w := newWorld(t, probe, os.Getuid())
		o := w.order()
		tt.set(&o)
		stdout, stderr, code := run(t, os.Getuid(), o)
		if code != 99 || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 && o.Masked == "guard" {
			t.Errorf("%s: exit code %d, output %q, error %q, want one with %q", tt.name, code, stdout, stderr, tt.want)
		}
	}
}
