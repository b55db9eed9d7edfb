package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rootbound/rootbound/roots"
)

// seatbelt is the beginning of each profile for macOS: everything is forbidden, also what its "default" leaves out, and
// then allowed what a program has to do and read that does nothing at all. Names of files show what is there, not what is
// in it: without them no runtime finds its modules.
const seatbelt = `(version 1)
(deny default)
(deny file-map-executable iokit-get-properties nvram* process-info*)
(deny mach-lookup (xpc-service-name-prefix ""))
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow sysctl-read
  (sysctl-name-prefix "hw.")
  (sysctl-name-prefix "machdep.cpu.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg"))
(allow file-read-metadata)
(allow file-read* (literal "/"))
(allow file-read* file-map-executable
  (subpath "/Library/Apple/System/Library")
  (subpath "/Library/Apple/usr/lib")
  (subpath "/System/Cryptexes")
  (subpath "/System/Library")
  (subpath "/System/Volumes/Preboot/Cryptexes")
  (subpath "/private/var/db/dyld")
  (subpath "/private/var/db/oah")
  (subpath "/private/var/db/timezone")
  (subpath "/usr/lib")
  (subpath "/usr/share/icu")
  (subpath "/usr/share/locale"))
`

// profile writes the policy for sandbox-exec. Paths of rules have to be real, since the kernel compares them with where a
// file is; isDir says which of them are directories.
//
// A directory that may be written may not be moved or removed itself: nothing else can be put in its place. Files are not
// made that give another user's rights to who runs them, nor does any change its owner.
func (p Policy) profile(isDir func(path string) bool) (string, error) {
	var b strings.Builder
	b.WriteString(seatbelt)
	for _, r := range p.Rules {
		path, err := seatbeltString(r.Path)
		if err != nil {
			return "", fmt.Errorf("confining the process to %q: %w", r.Path, err)
		}
		at, dir := "(literal "+path+")", isDir(r.Path)
		if dir {
			at = "(subpath " + path + ")"
		}
		beneath := "(require-all " + at + " (require-not (literal " + path + ")))"
		const isDirectory = "(vnode-type DIRECTORY)"
		if r.Access&roots.Read != 0 {
			b.WriteString("(allow file-read* file-map-executable " + at + ")\n")
		}
		if r.List && dir {
			b.WriteString("(allow file-read-data (require-all " + at + " (vnode-type DIRECTORY)))\n")
		}
		if r.Execute {
			b.WriteString("(allow process-exec* " + at + ")\n")
		}
		if r.Access&roots.Write != 0 {
			b.WriteString("(allow file-write-data file-write-flags file-write-mode file-write-times file-write-xattr " + at + ")\n")
		}
		if r.Access&roots.Write != 0 && dir {
			b.WriteString("(allow file-write-create " + beneath + ")\n")
			b.WriteString("(allow file-write-unlink (require-all " + beneath + " (require-not " + isDirectory + ")))\n")
		}
		if r.Access&roots.Delete != 0 && dir {
			b.WriteString("(allow file-write-unlink (require-all " + beneath + " " + isDirectory + "))\n")
		}
	}
	for _, e := range p.Excepts { // what comes later holds
		path, err := seatbeltString(e.Path)
		if err != nil {
			return "", fmt.Errorf("holding back %q: %w", e.Path, err)
		}
		at := "(literal " + path + ")"
		if isDir(e.Path) {
			at = "(subpath " + path + ")"
		}
		what := "file-write*"
		if e.Access&roots.Read == 0 {
			what = "file-read-data file-map-executable file-write*"
		}
		b.WriteString("(deny " + what + " " + at + ")\n")
		for _, dir := range p.above(e.Path) { // nor can anything else be put in its place
			dir, err := seatbeltString(dir)
			if err != nil {
				return "", fmt.Errorf("holding back %q: %w", e.Path, err)
			}
			b.WriteString("(deny file-write-unlink (literal " + dir + "))\n")
		}
	}
	switch {
	case p.Net.All:
		b.WriteString(`(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.trustd.agent"))
`)
		if !p.Unix {
			// Names are looked up over a socket in the file system, which is the one that is left.
			b.WriteString(`(deny network* (remote unix-socket))
(deny network* (local unix-socket))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
`)
		}
	case p.Net.Proxy != 0:
		fmt.Fprintf(&b, "(allow network-outbound (remote tcp \"localhost:%d\"))\n", p.Net.Proxy)
	}
	if p.Unix && !p.Net.All {
		b.WriteString(`(allow system-socket (socket-domain AF_UNIX))
(allow network-bind (local unix-socket))
(allow network-inbound (local unix-socket))
(allow network-outbound (remote unix-socket))
`)
	}
	return b.String(), nil
}

// seatbeltString quotes a path. Whoever chooses names must not write rules, so what cannot be said plainly is an error.
func seatbeltString(path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", errors.New("a rule is for an absolute path")
	}
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("a name with control characters, or that is no UTF-8, cannot be said in a profile")
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`, nil
}
