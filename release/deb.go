package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What every kind of package says of the program.
const (
	home    = "https://github.com/rootbound/rootbound"
	summary = "A boundary around MCP servers: the assistant sees the directories you name and nothing else"
	authors = "The Rootbound authors"
)

// debs makes a Debian package of each program for Linux. It depends on nothing and runs nothing when it is installed.
func (r *release) debs(built []*program, _ string) error {
	for _, b := range built {
		if b.os != "linux" {
			continue
		}
		files, err := r.installed(b)
		if err != nil {
			return err
		}
		var size int
		var md5sums bytes.Buffer
		for _, f := range files {
			size += len(f.data)
			fmt.Fprintf(&md5sums, "%x  %s\n", md5.Sum(f.data), f.name)
		}
		version := debianVersion(r.version)
		control := fmt.Sprintf(`Package: rootbound
Version: %s
Architecture: %s
Maintainer: %s <nobody@rootbound.invalid>
Installed-Size: %d
Section: utils
Priority: optional
Homepage: %s
Description: boundary around MCP servers
 Rootbound stands in front of a Model Context Protocol server, tells it
 which directories are its own, refuses calls with a path outside of them,
 and writes down what was asked and decided. On Linux the kernel can hold
 the server to its directories. It is a filesystem server, too.
`, version, b.arch, authors, (size+1023)/1024, home)
		head, err := tarGz([]file{plain("control", []byte(control)), plain("md5sums", md5sums.Bytes())}, "./", r.time)
		if err != nil {
			return err
		}
		data, err := tarGz(withParents(files), "./", r.time)
		if err != nil {
			return err
		}
		r.made[fmt.Sprintf("rootbound_%s_%s.deb", version, b.arch)] = ar(r.time, []file{
			plain("debian-binary", []byte("2.0\n")), plain("control.tar.gz", head), plain("data.tar.gz", data),
		})
	}
	return nil
}

// installed is where Debian wants everything.
func (r *release) installed(b *program) ([]file, error) {
	texts := map[string][]byte{}
	for _, name := range []string{"LICENSE", "NOTICE", "CHANGELOG.md"} {
		text, err := r.text(name)
		if err != nil {
			return nil, err
		}
		texts[name] = text
	}
	copyright := fmt.Sprintf("Rootbound (%s)\n\n%s\nThe Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.\n\n%s", home, texts["NOTICE"], licenses(b))
	files := []file{
		executable("usr/bin/rootbound", b.data),
		plain("usr/share/doc/rootbound/copyright", []byte(copyright)),
		plain("usr/share/doc/rootbound/changelog.gz", gzipped(texts["CHANGELOG.md"])),
		plain("usr/share/doc/rootbound/parts.cdx.json", r.made[r.partsName(b)]),
	}
	for _, m := range r.manual {
		files = append(files, plain("usr/share/man/man1/"+m.name+".gz", gzipped(m.data)))
	}
	for _, c := range r.complete {
		if to, ok := map[string]string{
			"rootbound.bash": "usr/share/bash-completion/completions/rootbound", "_rootbound": "usr/share/zsh/vendor-completions/_rootbound",
			"rootbound.fish": "usr/share/fish/vendor_completions.d/rootbound.fish",
		}[c.name]; ok {
			files = append(files, plain(to, c.data))
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// debianVersion is a version as Debian sorts it: what comes before a release is behind a tilde. A hyphen would begin the
// revision of a distribution.
func debianVersion(v string) string {
	v, pre, ok := strings.Cut(v, "-")
	if ok {
		v += "~" + strings.ReplaceAll(pre, "-", ".")
	}
	return v
}

// ar makes the archive that a Debian package is: deb(5) says how each head is.
func ar(at time.Time, files []file) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, f := range files {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, at.Unix(), 0, 0, 0o100000|f.mode.Perm(), len(f.data))
		b.Write(f.data)
		if len(f.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
