//go:build linux || darwin

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// order is what the stage is told.
type order struct {
	Policy Policy
	Level  Level // what has to be reached, no more and no less
	Path   string
	Args   []string
	Env    []string
	Shown  []string `json:",omitempty"` // the trials that were possible for the guard, where the stage begins confined
}

// report is what the stage says: that a descriptor comes with it, for which this program connects; that the level is
// reached, or why it is not; then nothing more, or why the program could not be run.
type report struct {
	Asks  bool `json:",omitempty"`
	Level Level
	Error string `json:",omitempty"`
}

// Stage is a program that is about to be started confined. It is for one start.
type Stage struct {
	// Path and Args are what has to be started, with an empty environment.
	Path string
	Args []string
	// Files are to be inherited, the first as descriptor 3.
	Files []*os.File
	// Attr, if not nil, is how it has to be started.
	Attr *syscall.SysProcAttr

	conn   *os.File // this program's end
	order  order
	listen func(fd int) // is given the descriptor by which the kernel asks this program
}

// newStage returns a stage for the order, which the command line path and args starts.
func newStage(o order, path string, args []string) (*Stage, error) {
	ends, err := pair()
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	return &Stage{
		Path: path, Args: args,
		Files: []*os.File{os.NewFile(uintptr(ends[1]), "stage")},
		conn:  os.NewFile(uintptr(ends[0]), "stage"), order: o,
	}, nil
}

// Confined waits until the program runs, and returns the level that was reached, tried out from inside. An error says why
// the program does not run.
func (s *Stage) Confined() (Level, error) {
	defer s.Close()
	s.Files[0].Close() // the stage has it
	err := json.NewEncoder(s.conn).Encode(s.order)
	if err == nil {
		err = unix.Shutdown(int(s.conn.Fd()), unix.SHUT_WR)
	}
	if err != nil {
		return Level{}, fmt.Errorf("telling the stage what to do: %w", err)
	}
	var level Level
	reached := false
	from := s.receive()
	for d := json.NewDecoder(from); ; {
		var r report
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF) && reached:
			return level, nil
		case err != nil:
			return Level{}, fmt.Errorf("confining the program: the stage ended without a word: %w", err)
		case r.Error != "":
			return Level{}, errors.New(r.Error)
		case r.Asks:
			from.asked(s.listen)
			continue
		case r.Level != s.order.Level && r.Level != s.order.Level.withoutParts():
			return Level{}, fmt.Errorf("bug: the stage reached %q instead of %q", r.Level, s.order.Level)
		}
		level, reached = r.Level, true
	}
}

// withoutParts is a level that may be reached instead: it says that it was not.
func (l Level) withoutParts() Level {
	l.Parts = false
	return l
}

// Close forgets a stage that was not started.
func (s *Stage) Close() {
	s.conn.Close()
	s.Files[0].Close()
}

// Enter is what this program does as a stage: it confines itself as its parent says on descriptor 3 and becomes the
// program that it was started for. It returns only when that cannot be done, with the error that the parent was told.
func Enter() error {
	runtime.LockOSThread() // what is restricted is this thread; the others end when the program is run
	conn := os.NewFile(3, "stage")
	o, err := readOrder(conn)
	if err != nil {
		return fmt.Errorf("reading what to confine: %w (this is for rootbound itself)", err)
	}
	w := json.NewEncoder(conn)
	enter := o.confine
	if !o.Level.Enforced() {
		enter = o.watch
	}
	if err = enter(); err == nil {
		if err = w.Encode(report{Level: o.Level}); err == nil {
			err = fmt.Errorf("running %q: %w", o.Path, syscall.Exec(o.Path, o.Args, o.Env))
		}
	} else {
		doing := "confining"
		if !o.Level.Enforced() {
			doing = "watching"
		}
		err = fmt.Errorf("%s the program: %w", doing, err)
	}
	return errors.Join(err, w.Encode(report{Error: err.Error()}))
}

// readOrder reads all that comes: what is left unread would end the connection before its time.
func readOrder(conn io.Reader) (o order, err error) {
	text, err := io.ReadAll(conn)
	if err != nil {
		return order{}, err
	}
	err = json.Unmarshal(text, &o)
	return o, err
}
