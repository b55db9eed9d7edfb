//go:build !linux

package rootfs

import "os"

func openKernel(string, how) (directory, error, bool) { return nil, nil, false }

func ofKernel(*os.File) bool   { return false }
func kernelFSPath(string) bool { return false }
