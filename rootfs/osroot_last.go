//go:build !rootbound_osroot

package rootfs

// onlyOSRoot: os.Root is the last that is taken.
const onlyOSRoot = false
