//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// answer is what the filter of a policy says to a system call. The machine of the tests reads what the kernel's does, in
// the other order of bytes.
func answer(t *testing.T, p Policy, arch, number uint32, args ...uint32) uint32 {
	t.Helper()
	raw, err := p.filter()
	if err != nil {
		t.Fatal(err)
	}
	list, all := bpf.Disassemble(raw)
	if !all {
		t.Fatal("the filter cannot be read")
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, dataArgs+8*6)
	binary.BigEndian.PutUint32(data[dataNumber:], number)
	binary.BigEndian.PutUint32(data[dataArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgs+8*i:], a)
	}
	n, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func TestFilter(t *testing.T) {
	tests := []struct {
		name         string
		arch, number uint32
		args         []uint32
		want         uint32
	}{
		{"the number of another architecture", unix.AUDIT_ARCH_I386, unix.SYS_READ, nil, kill},
		{"a plain call", auditArch, unix.SYS_READ, nil, allow},
		{"the newest that is known", auditArch, newest, nil, allow},
		{"one that the kernel may have, and this list not", auditArch, newest + 1, nil, refuse(unix.ENOSYS)},
		{"its own priority", auditArch, unix.SYS_SETPRIORITY, []uint32{unix.PRIO_PROCESS, 0}, allow},
		{"the priority of all processes of the user", auditArch, unix.SYS_SETPRIORITY, []uint32{unix.PRIO_USER, 0}, refuse(unix.EPERM)},
		{"its own class of input", auditArch, unix.SYS_IOPRIO_SET, []uint32{1, 0}, allow},
		{"the class of input of all of them", auditArch, unix.SYS_IOPRIO_SET, []uint32{3, 0}, refuse(unix.EPERM)},
	}
	for _, tt := range tests {
		if got := answer(t, Policy{}, tt.arch, tt.number, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}
