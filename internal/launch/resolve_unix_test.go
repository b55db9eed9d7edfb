//go:build unix

package launch

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	top := grow(t, "ro/file: ", "rw/dir/file: ", "rw/out -> ../ro", "rw/in -> dir", "link -> ro", "ro/round -> ../rw/in/../dir", "rw/away -> ../link/file", "circle -> circle")
	writable := func(dir string) bool { return strings.HasPrefix(dir+"/", top+"/rw/") }
	tests := []struct{ path, real, through string }{
		{"ro/file", "ro/file", ""},
		{"link/file", "ro/file", ""},
		{"rw/dir/../dir/file", "rw/dir/file", ""},
		{"rw/in/file", "rw/dir/file", ""},
		{"ro/round/file", "rw/dir/file", ""},
		{"rw/out", "ro", "rw/out"},
		{"rw/out/file", "ro/file", "rw/out"},
		{"rw/away", "ro/file", "rw/away"},
	}
	for _, tt := range tests {
		real, through, err := Resolve(top+"/"+tt.path, writable)
		want := ""
		if tt.through != "" {
			want = filepath.Join(top, tt.through)
		}
		if err != nil || real != filepath.Join(top, tt.real) || through != want {
			t.Errorf("Resolve(%q) = %q, %q, %v", tt.path, real, through, err)
		}
		if real, through, err := Resolve(top+"/"+tt.path, nil); err != nil || real != filepath.Join(top, tt.real) || through != "" {
			t.Errorf("Resolve(%q), where nothing is writable, = %q, %q, %v", tt.path, real, through, err)
		}
	}
	for _, path := range []string{"relative", top + "/circle", top + "/nowhere"} {
		if real, _, err := Resolve(path, nil); err == nil {
			t.Errorf("Resolve(%q) = %q", path, real)
		}
	}
}

// linkedWith is a program that says of itself that this is its dynamic linker.
func linkedWith(linker string) string {
	var b bytes.Buffer
	head := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	copy(head.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	binary.Write(&b, binary.LittleEndian, head)
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 120, Filesz: uint64(len(linker)), Memsz: uint64(len(linker))})
	b.WriteString(linker)
	return b.String()
}

// What a server can write into its root opens nothing else to it when it is started again.
func TestNeedsOfWhatCanBeWritten(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		args  string
		also  []string
	}{
		{"its modules are a link", []string{"rw/srv/main.js: ", "rw/srv/node_modules -> ../../secret"}, "bin/node rw/srv/main.js", nil},
		{"modules above are a link", []string{"rw/srv/package.json: ", "rw/srv/main.js: ", "rw/node_modules -> ../secret"}, "bin/node rw/srv/main.js", nil},
		{"its script is a link", []string{"rw/main.js -> ../secret/key"}, "bin/node rw/main.js", nil},
		{"it is in a directory that is a link", []string{"rw/srv -> ../secret"}, "bin/node rw/srv/key", nil},
		{"its environment is a link", []string{"secret/pyvenv.cfg: ", "secret/bin/python3: ", "rw/venv -> ../secret"}, "rw/venv/bin/python3 -m x", nil},
		{"its first line names a file", []string{"rw/tool: #!TOP/secret/key\n"}, "bin/sh -c true", []string{"rw/tool"}},
		{"its first line has arguments", []string{"rw/tool: #!TOP/bin/env -S node --require TOP/secret/key\n"}, "bin/sh -c true", []string{"rw/tool"}},
		{"its first line has one argument", []string{"rw/tool: #!TOP/bin/node --require=TOP/secret/key\n"}, "bin/sh -c true", []string{"rw/tool"}},
		{"its dynamic linker is a file", []string{"rw/tool: " + linkedWith("TOP/secret/key")}, "bin/sh -c true", []string{"rw/tool"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top := grow(t, append([]string{"bin/node: ", "bin/env: ", "bin/sh: ", "bin/true: ", "secret/key: "}, tt.files...)...)
			if err := os.Chmod(top+"/secret/key", 0o600); err != nil {
				t.Fatal(err)
			}
			words := strings.Fields(tt.args)
			look := Look{Dir: top, Getenv: func(name string) string {
				return map[string]string{"PATH": top + "/bin", "HOME": top + "/home"}[name]
			}}
			opened := func() bool {
				needs, err := Command{Path: words[0], Args: words[1:]}.Needs(look, tt.also...)
				if err != nil {
					return false
				}
				for _, n := range needs.Files {
					if n.Path == top+"/secret" || n.Path == top+"/secret/key" {
						return true
					}
				}
				return false
			}
			if !opened() && !strings.Contains(tt.name, "file") { // a file that is no program is none anywhere
				t.Error("nothing is opened where the server cannot write, so this shows nothing")
			}
			look.Writable = func(dir string) bool { return strings.HasPrefix(dir+"/", top+"/rw/") }
			if opened() {
				t.Error("the secret is opened")
			}
		})
	}
}

// A program in a root may be a link to one elsewhere, as in the environments of Python.
func TestNeedsOfALinkToAProgram(t *testing.T) {
	top := grow(t, "opt/bin/python3: ", "rw/venv/bin/python3 -> ../../../opt/bin/python3", "rw/venv/pyvenv.cfg: ", "rw/s.py: #!TOP/rw/venv/bin/python3\n")
	needs, err := Command{Path: "rw/s.py"}.Needs(Look{
		Dir: top, Getenv: func(string) string { return "" }, Writable: func(dir string) bool { return strings.HasPrefix(dir+"/", top+"/rw/") },
	})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, n := range needs.Files {
		if strings.HasPrefix(n.Path, top) {
			paths = append(paths, strings.TrimPrefix(n.Path, top))
		}
	}
	if got, want := strings.Join(paths, " "), "/rw/s.py /opt/bin/python3 /rw/venv /rw"; got != want {
		t.Errorf("needs %q, want %q", got, want)
	}
}
