package roots

import "fmt"

// Reason says why a root was refused, in one word that does not change: for branching and for logs.
type Reason string

// The reasons.
const (
	// NotFile: a URI of another scheme.
	NotFile Reason = "scheme"
	// NoScheme: a path where a URI is wanted.
	NoScheme Reason = "no-scheme"
	// NotStrict: a form that is commonly sent and easily understood, but no file URI by the letter. Only StrictURI.
	NotStrict Reason = "not-strict"
	// RemoteHost: a URI of another machine, or a host that no path can name here.
	RemoteHost Reason = "host"
	// QueryOrFragment: a "?" or "#" that is not encoded.
	QueryOrFragment Reason = "query"
	// BadEncoding: a "%" that no two hexadecimal digits follow.
	BadEncoding Reason = "encoding"
	// HasNUL: a NUL byte.
	HasNUL Reason = "nul"
	// NotAbsolute: a path that does not start at the top.
	NotAbsolute Reason = "relative"
	// DotDot: a ".." element.
	DotDot Reason = "dotdot"
	// DevicePath: a Windows path of the device name space.
	DevicePath Reason = "device-path"
	// Missing: nothing is there.
	Missing Reason = "missing"
	// Unopenable: this process may not open it, or the system cannot.
	Unopenable Reason = "unopenable"
	// WrongKind: something is there that is neither a directory nor a regular file.
	WrongKind Reason = "kind"
	// TooBroad: a directory that Broad reports, and that was not allowed to be one.
	TooBroad Reason = "broad"
	// Moved: the path leads to another place, or to another kind of thing, than it did.
	Moved Reason = "moved"
	// TooMany: it and the rest of a list are beyond what is looked at.
	TooMany Reason = "too-many"
)

var reasonText = map[Reason]string{
	NotFile:         "it is not a file URI",
	NoScheme:        "it is a path without a scheme",
	NotStrict:       "it is not a file URI by the letter",
	RemoteHost:      "its host is not this machine",
	QueryOrFragment: "it has a query or a fragment",
	BadEncoding:     "it has a % that no two hexadecimal digits follow",
	HasNUL:          "it has a NUL byte",
	NotAbsolute:     "its path is not absolute",
	DotDot:          "its path has a \"..\" element",
	DevicePath:      "its path is a device path",
	Missing:         "it does not exist",
	Unopenable:      "it cannot be opened",
	WrongKind:       "it is neither a directory nor a regular file",
	TooBroad:        "it is broad: the whole disk, a home directory, or what holds them",
	Moved:           "its path leads elsewhere now",
	TooMany:         "it and what follows it are more roots than are looked at",
}

// Error says which root was refused, why, and what to do instead.
type Error struct {
	// Root is the URI or the path, as it came.
	Root string
	// Reason is why.
	Reason Reason
	// Fix is what to write or do instead, for a person.
	Fix string
	// Err is what the system said, or nil.
	Err error
}

// Error is one line: the root, why, what the system said, and the fix.
func (e *Error) Error() string {
	text := fmt.Sprintf("refusing root %q: %s", e.Root, e.Text())
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Text is why, with what the system said, where the root is named already.
func (e *Error) Text() string {
	text := reasonText[e.Reason]
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Unwrap returns what the system said.
func (e *Error) Unwrap() error { return e.Err }
