//go:build !windows && !darwin

package policy

// foldsNames says that names of files are the same in other letter case.
const foldsNames = false
