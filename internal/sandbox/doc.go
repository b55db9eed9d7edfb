// Package sandbox lets the kernel hold a process to a set of files and to as much network as it needs.
//
// A program that is started confined is held whatever it tries: it may be hostile.
//
//	p := sandbox.Policy{Rules: []sandbox.Rule{{Path: "/srv/docs", Access: roots.ReadOnly}, …}}
//	s, err := p.Stage("/usr/bin/node", []string{"node", "server.js"}, env)
//	… start s.Path with s.Args and s.Files …
//	level, err := s.Confined() // what the kernel enforces, tried out from inside; or why the program was not started
//
// In between, this program runs a second time as a stage (Enter), restricts itself, tries what must not be possible any
// more, and becomes the other program. This process can restrict itself too, as a second layer behind code that is meant
// to stay in its directories: see Restrict.
//
// On Linux this is Landlock, from version 3 of its interface on (Linux 6.2), and for other programs also seccomp, an
// empty set of capabilities, no_new_privs and limits. Older versions of Landlock cannot forbid to truncate a file; nothing
// is started then.
//
// A program can also be started so that it may do everything and is watched, to find out what it needs: see Watch.
//
// On macOS it is a Seatbelt profile that sandbox-exec puts in force, for other programs alone; each start tries it from
// inside, but nobody has seen it run on a Mac. On other systems nothing is confined.
//
// # Limits
//
// What is open stays open with the rights it had; of a program that is started only its standard streams are. Looking at
// a file without opening it (stat, a watch for changes) is not restricted, nor are mode and times of files elsewhere that
// belong to the same user, nor with Restrict their owner and attributes. A rule holds for a file or a directory, not for
// its name: what takes its place later is outside. With Restrict a directory in a directory cannot be taken out of it again, so
// a read-only root in a writable one is writable to the kernel; for a program that is started, Excepts take it out where a mount
// namespace can be had. What is not there when it starts cannot be taken out. A Rule for one file that may be replaced has to be one for
// its directory. A file with a second name inside is inside. Before version 6 of Landlock, signals reach other processes
// of the user (Level says so). Time, memory and disk are not bounded. A restriction is never lifted.
//
// On macOS a rule holds for a name, spelled as the disk has it; the top directory can be listed; this program's own file
// can be read and run; with Net.Proxy its port is reached on each address of this machine; and a program that was started
// outlives a guard whose watcher was killed.
package sandbox

import (
	"fmt"

	"github.com/rootbound/rootbound/roots"
)

// Rule lets the process reach what is at Path, and, when that is a directory, everything beneath it. Reading is reading
// files and listing directories. For Restrict links in Path are followed; a program is not started when there is one, since
// another program may have put it there meanwhile: only /proc/self is known. Writing includes taking names away, because a
// file that is replaced in one step takes one away; only directories can be removed with roots.Delete alone.
type Rule struct {
	Path   string
	Access roots.Access
	// Execute lets files be run as programs. Nothing is executable without it.
	Execute bool `json:",omitempty"`
	// List lets directories be listed, also where Access is nothing: names, and no more.
	List bool `json:",omitempty"`
}

// Net is what a confined program may reach over the network. The zero value is nothing: no socket is made but pairs.
type Net struct {
	// All is everything: TCP and UDP, to any host, this one included, and from any host.
	All bool `json:",omitempty"`
	// Proxy, if not zero, is the only port it reaches, over TCP, on 127.0.0.1: this process connects it, for as long as it
	// lives. All must not be set.
	Proxy uint16 `json:",omitempty"`
}

// String says it for people.
func (n Net) String() string {
	switch {
	case n.All:
		return "whole network"
	case n.Proxy != 0:
		return "network through our proxy"
	}
	return "no network"
}

// Except takes something out of what rules open: what is at Path, and beneath it, has at most that Access, roots.ReadOnly or
// nothing. It has to be there, and no link may be on the way to it.
type Except struct {
	Path   string
	Access roots.Access
}

// Policy is what a program may do that is started confined. The zero value allows nothing, not even to run the program.
type Policy struct {
	Rules []Rule
	// Excepts are held to where that can be had: Level says whether, and Parts why not.
	Excepts []Except `json:",omitempty"`
	Net     Net
	// Unix lets it use Unix sockets. Before version 9 of Landlock that is any of them that the user may use.
	Unix bool `json:",omitempty"`
}

// Level says what the kernel enforces. The zero value is nothing.
type Level struct {
	// Landlock is the version of the interface that is in force, 0 when none is.
	Landlock int
	// Seatbelt is set when the profile of macOS is in force, of which Net and Unix are parts.
	Seatbelt bool `json:",omitempty"`
	// Seccomp is set when a filter of system calls is in force, so that Net and Unix hold.
	Seccomp bool
	Net     Net
	Unix    bool
	// Parts is set when the policy's Excepts hold.
	Parts bool `json:",omitempty"`
	// Watched is set when what the program does is told (see Watch).
	Watched bool `json:",omitempty"`
}

// Enforced reports whether the kernel enforces anything.
func (l Level) Enforced() bool { return l.Landlock > 0 || l.Seatbelt }

// StopsSignals reports whether a confined program cannot signal others of the user.
func (l Level) StopsSignals() bool { return l.Landlock >= signals || l.Seatbelt }

// signals is the version of Landlock from which on it stops signals to processes outside.
const signals = 6

// String says it in a line for people.
func (l Level) String() string {
	switch held := l; {
	case l.Watched && l.Enforced():
		held.Watched = false
		return "watched, and " + held.String()
	case l.Watched:
		return "watched, and held by nothing"
	case !l.Enforced():
		return "not confined by the kernel"
	case l.Seatbelt:
		s := fmt.Sprintf("confined: Seatbelt (which its authors have never run on a Mac), %s", l.Net)
		if l.Unix {
			s += ", Unix sockets"
		}
		return s
	case !l.Seccomp:
		return fmt.Sprintf("confined by the kernel (Landlock %d)", l.Landlock)
	}
	layers := fmt.Sprintf("landlock abi %d + seccomp", l.Landlock)
	if l.Parts {
		layers += " + mounts"
	}
	s := fmt.Sprintf("confined: %s, %s", layers, l.Net)
	if l.Unix {
		s += ", Unix sockets"
	}
	if !l.StopsSignals() {
		s += ", signals not stopped"
	}
	return s
}
