//go:build !linux

package rootfs

import "os"

func ofKernel(*os.File) bool   { return false }
func kernelFSPath(string) bool { return false }
