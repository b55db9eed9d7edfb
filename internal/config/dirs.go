package config

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/roots"
)

// roots resolves the configured directories: those of the first source that has any, then what the managed file and the
// project's leave of them.
func (r *resolver) roots() error {
	p := r.p
	if f := r.layers.operator; f != nil {
		p.Active = f.Active
	}
	set, fromManaged, err := r.configured()
	if err != nil {
		return err
	}
	if p.Source == FromFlags || p.Source == FromFile {
		if err := r.checkArguments(set); err != nil {
			return err
		}
	}
	if r.managed.Roots.Given() && !fromManaged {
		set = r.cut(set, r.managed.Roots, false)
	}
	if r.project.Roots.Given() {
		set = r.cut(set, r.project.Roots, true)
	}
	p.Roots = set
	return r.checkPlaceholders()
}

// configured returns the directories of the first source that has any.
func (r *resolver) configured() (set roots.Set, fromManaged bool, err error) {
	p := r.p
	operator, managed := r.operator.Roots, r.managed.Roots
	switch {
	case len(r.flags.Roots) > 0:
		p.Source = FromFlags
		set, err = r.fromFlags()
		// The roots of a file are also what the active workspace is chosen from.
		active := slices.ContainsFunc(r.flags.Roots, func(f DirFlag) bool { return f.Dir == launch.Active })
		if operator.Given() && !active && !r.same(operator.Value, set) {
			r.note("%s: roots have no effect: %s takes their place", operator.Origin, r.flags.Roots[0].Flag)
		}
		return set, false, err
	case operator.Given():
		r.fromList(r.layers.operator)
		set, err = r.fromFile(operator.Value)
		return set, false, err
	case managed.Given():
		r.fromList(r.layers.managed)
		set, err = r.fromFile(managed.Value)
		return set, true, err
	}
	if p.URL.Given() { // the work tree that this happens to be started in is nothing to a server elsewhere
		return roots.Set{}, false, nil
	}
	if set, err = r.fromArguments(); err != nil || set.Len() > 0 {
		p.Source = FromArguments
		return set, false, err
	}
	// Where the client's list was asked for, a directory that nobody named does not stand in its way. What a project says
	// to that does not bring the directory back.
	asked := first(r.flagged.ClientRoots, r.operator.ClientRoots, r.managed.ClientRoots).Value == roots.Accept &&
		(!r.managed.ClientRoots.Given() || r.managed.ClientRoots.Value == roots.Accept)
	if top, ok := roots.Workspace(r.sys.Dir); ok && !asked {
		d, err := roots.Resolve(top, roots.ResolveOptions{Access: roots.ReadWrite, Origin: "workspace"})
		if err == nil {
			p.Source = FromWorkspace
			return roots.NewSet(d), false, nil
		}
	}
	return roots.Set{}, false, nil
}

// same reports whether a list of a file says what the set says, as it does for a server that {roots} was filled in for.
func (r *resolver) same(list []Root, set roots.Set) bool {
	dirs := set.Dirs()
	return len(list) == len(dirs) && !slices.ContainsFunc(list, func(root Root) bool {
		d, err := resolve(filepath.Dir(root.Origin.File), root.Path, roots.ResolveOptions{Access: root.Access, AllowBroad: true})
		return err != nil || !slices.ContainsFunc(dirs, func(s roots.Dir) bool { return s.Path == d.Path && s.Access == d.Access })
	})
}

// fromList says which list of a file gives the directories, and what has no effect besides.
func (r *resolver) fromList(f *File) {
	p := r.p
	p.Source, p.RootsFile = FromFile, f.Path
	if s, ok := f.Server(p.Server); ok && s.Roots.Given() {
		p.OwnRoots = true
		if f.Roots.Given() {
			r.note("%s: the roots for all have no effect on the server %q, which has roots of its own (%s)", f.Roots.Origin, p.Server, s.Roots.Origin)
		}
	}
}

// missing reports whether a directory is left out because it is not there, and takes note of that.
func (r *resolver) missing(from, dir string, err error) bool {
	var e *roots.Error
	if !r.flags.Partial || !errors.As(err, &e) || e.Reason != roots.Missing {
		return false
	}
	r.p.Missing = append(r.p.Missing, e.Root)
	r.note("%s %s is not there and is left out until it is", from, dir)
	return true
}

func (r *resolver) fromFlags() (roots.Set, error) {
	var dirs []roots.Dir
	var none error // there, of those that were named
	for _, f := range r.flags.Roots {
		dir, o := f.Dir, roots.ResolveOptions{Name: f.Name, Access: f.Access, Origin: f.Flag, AllowBroad: true}
		if dir == launch.Active {
			if !r.p.Active.Given() {
				return roots.Set{}, fmt.Errorf("%s %s: no active workspace is set: rootbound roots use DIR sets it", f.Flag, launch.Active)
			}
			var name string
			dir, name = r.layers.operator.active()
			o.AllowBroad = r.p.AllowBroad.Value
			if o.Name == "" {
				o.Name = name
			}
			o.Origin = f.Flag + " " + launch.Active + ", " + r.p.Active.Origin.String()
		}
		d, err := resolve(r.sys.Dir, dir, o)
		if err != nil {
			err = fmt.Errorf("%s %s: %w", f.Flag, f.Dir, err)
			if none = cmp.Or(none, err); r.missing(f.Flag, f.Dir, err) {
				continue
			}
			return roots.Set{}, err
		}
		if !d.File && roots.Broad(d.Path) {
			r.note("%s %s: this is a broad directory, and all of it is served", f.Flag, f.Dir)
		}
		dirs = append(dirs, d)
	}
	if len(dirs) == 0 && none != nil {
		return roots.Set{}, none
	}
	return unique(dirs, func(d roots.Dir) Origin { return Origin{Word: d.Origin} })
}

func (r *resolver) fromFile(list []Root) (roots.Set, error) {
	var dirs []roots.Dir
	var faults []error
	var none error // there, of those that were named
	origins := map[string]Origin{}
	for _, root := range list {
		d, err := resolve(filepath.Dir(root.Origin.File), root.Path, roots.ResolveOptions{
			Name: root.Name, Access: root.Access, Pinned: root.Pin, AllowBroad: r.p.AllowBroad.Value, Origin: root.Origin.String(),
		})
		if err != nil {
			var e *roots.Error
			if errors.As(err, &e) && e.Reason == roots.TooBroad {
				err = fmt.Errorf("%w; allow_broad = true allows it", err)
			}
			fault := root.Origin.errorf("%v", err)
			if r.missing(root.Origin.String()+": root", root.Path, err) {
				none = cmp.Or(none, fault)
				continue
			}
			faults = append(faults, fault)
			continue
		}
		origins[d.Path] = root.Origin
		dirs = append(dirs, d)
	}
	if len(dirs) == 0 && none != nil {
		faults = append(faults, none)
	}
	if err := errors.Join(faults...); err != nil {
		return roots.Set{}, err
	}
	return unique(dirs, func(d roots.Dir) Origin { return origins[d.Path] })
}

// fromArguments takes the directory arguments of a known server. Those that are not there are left out, as the servers
// do, unless none is.
func (r *resolver) fromArguments() (roots.Set, error) {
	var dirs []roots.Dir
	var missing error
	target := launch.Identify(r.p.Command)
	for _, arg := range r.p.Profile.Directories(target) {
		if launch.HasPlaceholder(arg.Path) {
			continue
		}
		d, err := resolve(r.startsIn(), arg.Path, roots.ResolveOptions{
			Name: arg.Name, Access: arg.Access, AllowBroad: r.p.AllowBroad.Value, Origin: "argument",
		})
		var e *roots.Error
		switch {
		case err == nil:
			dirs = append(dirs, d)
		case errors.As(err, &e) && e.Reason == roots.Missing:
			missing = fmt.Errorf("the server's directory argument %w", err)
			r.note("%v", missing)
		case errors.As(err, &e) && e.Reason == roots.TooBroad:
			return roots.Set{}, fmt.Errorf("the server's directory argument %w; --root %s allows it", err, arg.Path)
		default:
			return roots.Set{}, fmt.Errorf("the server's directory argument %w", err)
		}
	}
	if len(dirs) == 0 && missing != nil {
		return roots.Set{}, missing
	}
	return unique(dirs, func(roots.Dir) Origin { return Origin{Word: "the server's arguments"} })
}

// startsIn is the directory in which the server's relative arguments begin.
func (r *resolver) startsIn() string {
	if dir := r.p.Command.Dir; filepath.IsAbs(dir) {
		return dir
	}
	return r.sys.Dir
}

// resolve is roots.Resolve for a path that starts at dir when it is relative: and then never a broad one.
func resolve(dir, path string, o roots.ResolveOptions) (roots.Dir, error) {
	full := absolute(dir, path)
	if full != path && path != "" && path[0] != '~' {
		o.AllowBroad = false
	}
	return roots.Resolve(full, o)
}

// unique makes a set, and refuses two directories with one name.
func unique(dirs []roots.Dir, origin func(roots.Dir) Origin) (roots.Set, error) {
	set := roots.NewSet(dirs...)
	names := map[string]roots.Dir{}
	for _, d := range set.Dirs() {
		if first, twice := names[d.Name]; twice && d.Name != "" {
			return roots.Set{}, origin(d).errorf("two roots are named %q: %q and %q", d.Name, first.Path, d.Path)
		}
		names[d.Name] = d
	}
	return set, nil
}

// cut returns what a list of another layer leaves of set. A directory of the list that is not there leaves nothing.
func (r *resolver) cut(set roots.Set, list Setting[[]Root], project bool) roots.Set {
	var dirs []roots.Dir
	for _, root := range list.Value {
		d, err := roots.Resolve(absolute(filepath.Dir(root.Origin.File), root.Path), roots.ResolveOptions{
			// The name, and for a project also whether it is pinned, is for the layers above to say.
			Access: root.Access, Pinned: root.Pin || project, AllowBroad: true, Origin: root.Origin.String(),
		})
		if err != nil {
			r.note("%s: %v", root.Origin, err)
			continue
		}
		dirs = append(dirs, d)
	}
	left := set.Intersect(roots.NewSet(dirs...))
	for _, d := range dirs {
		if roots.NewSet(d).Intersect(set).Len() == 0 {
			r.note("%s: %q has no effect: it is in none of the roots above", d.Origin, d.Path)
		}
	}
	for _, d := range set.Dirs() {
		if roots.NewSet(d).Intersect(left).Len() == 0 {
			r.note("%s: root %q is left out: %s does not have it", d.Origin, d.Path, list.Origin)
		}
	}
	return named(left, set)
}

// named gives roots the names of those that they are left of, each name once.
func named(left, of roots.Set) roots.Set {
	dirs := left.Dirs()
	used := map[string]bool{}
	for _, d := range dirs {
		used[d.Name] = true
	}
	for i, d := range dirs {
		if d.Name != "" {
			continue
		}
		if from, _, ok := of.Match(d.Path); ok && !used[from.Name] {
			dirs[i].Name = from.Name
			used[from.Name] = true
		}
	}
	return roots.NewSet(dirs...)
}

// checkArguments refuses a server whose own directory arguments lie outside the roots.
func (r *resolver) checkArguments(set roots.Set) error {
	err := launch.CheckDirectories(r.p.Command, set, r.startsIn())
	if err == nil {
		return nil
	}
	return r.p.CommandOrigin.errorf("%v", err)
}

// checkPlaceholders refuses a command that could not be filled.
func (r *resolver) checkPlaceholders() error {
	p := r.p
	if p.Roots.Len() == 0 && p.ClientRoots.Value == roots.Accept {
		return nil
	}
	if p.Command.UsesRoots() {
		if _, err := p.Command.Fill(p.Roots); err != nil {
			return p.CommandOrigin.errorf("%v", err)
		}
	}
	for tool, t := range p.Tools {
		for arg, text := range t.Defaults.Value {
			if _, err := launch.FillText(text, p.Roots); err != nil {
				return t.Defaults.Origin.errorf("the default of %s of %s: %v", arg, tool, err)
			}
		}
	}
	return nil
}
