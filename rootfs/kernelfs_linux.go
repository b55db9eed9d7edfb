package rootfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// ofKernel says whether f lies in a file system that shows the kernel's or a process's insides.
func ofKernel(f *os.File) bool {
	yes := true // not to be asked: refuse
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { yes = kernelFS(int(fd)) })
	}
	return yes
}

func kernelFS(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) != nil || kernelMagic[uint32(st.Type)]
}

func kernelFSPath(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) != nil || kernelMagic[uint32(st.Type)]
}

// kernelMagic does not hold devtmpfs, which calls itself tmpfs: what is dangerous there are devices, which are refused.
var kernelMagic = map[uint32]bool{
	unix.AAFS_MAGIC:            true,
	unix.BINDERFS_SUPER_MAGIC:  true,
	unix.BINFMTFS_MAGIC:        true,
	unix.BPF_FS_MAGIC:          true,
	unix.CGROUP2_SUPER_MAGIC:   true,
	unix.CGROUP_SUPER_MAGIC:    true,
	unix.DEBUGFS_MAGIC:         true,
	unix.DEVPTS_SUPER_MAGIC:    true,
	unix.EFIVARFS_MAGIC:        true,
	unix.NSFS_MAGIC:            true,
	unix.OPENPROM_SUPER_MAGIC:  true,
	unix.PID_FS_MAGIC:          true,
	unix.PROC_SUPER_MAGIC:      true,
	unix.PSTOREFS_MAGIC:        true,
	unix.RDTGROUP_SUPER_MAGIC:  true,
	unix.SECURITYFS_MAGIC:      true,
	unix.SELINUX_MAGIC:         true,
	unix.SMACK_MAGIC:           true,
	unix.SYSFS_MAGIC:           true,
	unix.TRACEFS_MAGIC:         true,
	unix.USBDEVICE_SUPER_MAGIC: true,
	unix.XENFS_SUPER_MAGIC:     true,
	configfsMagic:              true,
	fusectlMagic:               true,
	rpcPipefsMagic:             true,
}

// Not in x/sys.
const (
	configfsMagic  = 0x62656570
	fusectlMagic   = 0x65735543
	rpcPipefsMagic = 0x67596969
)
