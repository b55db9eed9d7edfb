package rootfs

import "github.com/rootbound/rootbound/roots"

// Change is a kind of change, for May.
type Change uint8

const (
	// ToWrite is what Replace does at a path.
	ToWrite Change = iota
	// ToMake is what MkdirAll does at a path.
	ToMake
	// ToTake is what Trash and Remove do at a path, and Move at its first.
	ToTake
	// ToPut is what Move does at its second path, where nothing may be.
	ToPut
)

// May says what the rights of the roots, Options.Deny and Options.Protect have to say about a change at a path: nil, or the
// error with which it would begin. It is for what has to be said before a change is made. The change itself looks again.
func (f *FS) May(change Change, path string) error {
	e := [...]end{ToWrite: missing, ToMake: missing, ToTake: lastLink, ToPut: lastLink | missing}[change]
	return f.reach("looking for", path, e, func(p target) error {
		if change == ToPut && p.rest == nil {
			return Exists
		}
		return f.may(change, p)
	})
}

func (f *FS) may(change Change, p target) error {
	right, protects := roots.Write, f.protectsAround
	switch change {
	case ToWrite, ToMake:
		protects = f.protects
	case ToTake:
		right = roots.Delete
	}
	switch {
	case p.name == "." && change == ToTake:
		return IsRoot
	case p.denied:
		return Denied
	case change == ToMake && p.rest == nil: // something is there, and stays as it is
		return nil
	case protects(p):
		return Protected
	case p.root.dir.Access&right == 0:
		return ReadOnly
	}
	return nil
}
