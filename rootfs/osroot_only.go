//go:build rootbound_osroot

package rootfs

// onlyOSRoot: for tests of programs that use this package, as it is on systems that have nothing else.
const onlyOSRoot = true
