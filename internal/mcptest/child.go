package mcptest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const roleEnv = "ROOTBOUND_TEST_ROLE"

// Main makes the test binary into one of the children below when it was started as one. Call it first in TestMain.
func Main() {
	role, arg, _ := strings.Cut(os.Getenv(roleEnv), " ")
	switch role {
	case "":
		return
	case "relay":
		os.Exit(relay(arg))
	case "tree":
		os.Exit(tree(arg))
	case "exit":
		code, _ := strconv.Atoi(arg)
		os.Exit(code)
	}
	fmt.Fprintf(os.Stderr, "mcptest: unknown role %q\n", role)
	os.Exit(2)
}

// Command returns the command line and the environment of this test binary in a role.
func Command(role string) (args, env []string) {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{exe}, append(os.Environ(), roleEnv+"="+role)
}

// relay joins the standard streams with the socket at path, until either end closes. A line "!exit N" from the socket
// ends the process.
func relay(path string) int {
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() {
		io.Copy(conn, os.Stdin)
		conn.(*net.UnixConn).CloseWrite()
	}()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if rest, ok := strings.CutPrefix(line, "!exit "); ok {
			code, _ := strconv.Atoi(strings.TrimSpace(rest))
			return code
		}
		if _, werr := os.Stdout.WriteString(line); werr != nil || err != nil {
			return 0
		}
	}
}

// tree writes its pid and those of a child and of one that left the process group to the file at path, ignores SIGTERM,
// and stays although its input ends.
func tree(path string) int {
	signal.Ignore(syscall.SIGTERM)
	var pids []string
	for _, script := range []string{"exec sleep 600", "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $!; exec sleep 0"} {
		cmd := exec.Command("sh", "-c", script)
		if strings.Contains(script, "setsid") {
			out, err := cmd.Output()
			if err != nil {
				return 2
			}
			pids = append(pids, strings.TrimSpace(string(out)))
			continue
		}
		if err := cmd.Start(); err != nil {
			return 2
		}
		pids = append(pids, strconv.Itoa(cmd.Process.Pid))
	}
	pids = append(pids, strconv.Itoa(os.Getpid()))
	if os.WriteFile(path+".new", []byte(strings.Join(pids, "\n")), 0o600) != nil || os.Rename(path+".new", path) != nil {
		return 2
	}
	time.Sleep(10 * time.Minute)
	return 0
}

// Server is a child's end that the test holds: what the child's standard streams carry.
type Server struct {
	t        testing.TB
	listener net.Listener
	Path     string
}

// NewServer returns a server whose child is started with the relay role and Path.
func NewServer(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcptest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &Server{t: t, listener: l, Path: path}
}

// Command returns the command line and environment of the child.
func (s *Server) Command() (args, env []string) { return Command("relay " + s.Path) }

// Accept waits for the next start of the child.
func (s *Server) Accept() net.Conn {
	s.t.Helper()
	s.listener.(*net.UnixListener).SetDeadline(time.Now().Add(Patience))
	conn, err := s.listener.Accept()
	if err != nil {
		s.t.Fatalf("waiting for the server to be started: %v", err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// Patience is how long a test waits for what must come.
const Patience = 20 * time.Second
