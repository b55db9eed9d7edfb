package launch

import (
	"debug/elf"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// link adds what a program, or a library, that is not linked statically is linked with: the dynamic linker, the system's
// directories of libraries, since more of them are loaded as it runs, and each library that lies elsewhere.
func (f *finder) link(path string) { f.linkOnce(path, map[string]bool{}) }

// linkOnce is link for what was not looked at.
func (f *finder) linkOnce(path string, looked map[string]bool) {
	if looked[path] {
		return
	}
	looked[path] = true
	file, err := elf.Open(path)
	if err != nil {
		return // it is no program of this system: to start it will fail
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, min(p.Filesz, 4096))
			if n, _ := p.ReadAt(name, 0); n > 0 {
				linker := strings.TrimRight(string(name[:n]), "\x00")
				if !isELF(linker) {
					return
				}
				f.add(Need{Path: linker, Access: roots.Read, Execute: true, Why: "the dynamic linker"})
				f.systemLibraries()
			}
		}
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		return
	}
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		lists, _ := file.DynString(tag)
		for _, list := range lists {
			for _, dir := range filepath.SplitList(list) {
				dir = strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path)).Replace(dir)
				if filepath.IsAbs(dir) {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	for _, name := range needed {
		for _, dir := range append(dirs, "/usr/local/lib", "/usr/local/lib64") {
			library, err := filepath.EvalSymlinks(filepath.Join(dir, name))
			if err != nil || !isELF(library) {
				continue
			}
			f.add(Need{Path: library, Access: roots.Read, Why: "libraries"})
			f.linkOnce(library, looked)
			break
		}
	}
}

// isELF reports whether a file is a program or a library. What a program says that it is linked with need not be one.
func isELF(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

// systemLibraries adds the directories that the dynamic linker searches by itself, those of this architecture alone
// where there are such.
func (f *finder) systemLibraries() {
	found := false
	for _, pattern := range []string{"/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*"} {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			found = true
			f.add(Need{Path: dir, Access: roots.Read, Why: "libraries"})
		}
	}
	dirs := []string{"/lib64", "/usr/lib64", "/etc/ld.so.cache"}
	if !found {
		dirs = append(dirs, "/lib", "/usr/lib")
	}
	for _, dir := range dirs {
		f.add(Need{Path: dir, Access: roots.Read, Why: "libraries"})
	}
}
