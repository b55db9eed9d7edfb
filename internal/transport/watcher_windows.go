package transport

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// watcher is a job object: the system ends its processes when the last handle to it, which only this program has, is
// closed, and lets them not leave it, nor touch the clipboard, the desktop, the system's settings and other programs' windows.
// That is all that holds a server here: its files are not confined.
type watcher struct {
	job  windows.Handle
	once sync.Once
}

// Watch does nothing: a job object needs no process.
func Watch() {}

func newWatcher() (*watcher, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION |
		windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS | windows.JOB_OBJECT_LIMIT_JOB_MEMORY
	info.BasicLimitInformation.ActiveProcessLimit = mostProcesses
	info.JobMemoryLimit = uintptr(min(mostMemory, uint64(^uintptr(0))))
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		ui := windows.JOBOBJECT_BASIC_UI_RESTRICTIONS{UIRestrictionsClass: windows.JOB_OBJECT_UILIMIT_DESKTOP | windows.JOB_OBJECT_UILIMIT_DISPLAYSETTINGS |
			windows.JOB_OBJECT_UILIMIT_EXITWINDOWS | windows.JOB_OBJECT_UILIMIT_GLOBALATOMS | windows.JOB_OBJECT_UILIMIT_HANDLES |
			windows.JOB_OBJECT_UILIMIT_READCLIPBOARD | windows.JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS | windows.JOB_OBJECT_UILIMIT_WRITECLIPBOARD}
		_, err = windows.SetInformationJobObject(job, windows.JobObjectBasicUIRestrictions, uintptr(unsafe.Pointer(&ui)), uint32(unsafe.Sizeof(ui)))
	}
	if err != nil {
		windows.CloseHandle(job)
		return nil, os.NewSyscallError("SetInformationJobObject", err)
	}
	return &watcher{job: job}, nil
}

// What all processes of one server may have together: much more than a server needs, and less than a machine has.
const (
	mostProcesses = 512
	mostMemory    = uint64(8 << 30)
)

// start starts cmd inside the job.
func (g *watcher) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		return err
	}
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(g.job, h)
		windows.CloseHandle(h)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return os.NewSyscallError("AssignProcessToJobObject", err)
	}
	return nil
}

// terminate does nothing: there is no request to end that every program of this system understands.
func (g *watcher) terminate() {}

func (g *watcher) kill() { windows.TerminateJobObject(g.job, 1) }

func (g *watcher) close() { g.once.Do(func() { windows.CloseHandle(g.job) }) }

func pipe() (r, w *os.File, err error) { return os.Pipe() }

// widen does nothing: the system chooses how much a pipe holds.
func widen(int) {}

// Adopt does nothing: the job object holds all descendants.
func Adopt() error { return nil }

// KillDescendants does nothing: the job object holds all descendants.
func KillDescendants() {}

func exitError(s *os.ProcessState, err error) *ExitError {
	if s == nil {
		return &ExitError{Code: 1, State: err.Error()}
	}
	return &ExitError{Code: s.ExitCode(), State: s.String()}
}
