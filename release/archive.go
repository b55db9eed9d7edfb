package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// file is one file or directory of a package. Who packs it and when makes no difference: the owner is root unless it is
// said, and the time is that of the release.
type file struct {
	name  string // with slashes, relative
	mode  fs.FileMode
	data  []byte
	owner int
}

func plain(name string, data []byte) file      { return file{name: name, mode: 0o644, data: data} }
func executable(name string, data []byte) file { return file{name: name, mode: 0o755, data: data} }
func directory(name string, mode fs.FileMode, owner int) file {
	return file{name: name, mode: fs.ModeDir | mode, owner: owner}
}

// below puts files into a directory.
func below(dir string, files []file) []file {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].name = path.Join(dir, moved[i].name)
	}
	return moved
}

// withParents adds the directories that files are in, and sorts all.
func withParents(files []file) []file {
	all := slices.Clone(files)
	known := map[string]bool{".": true}
	for _, f := range files {
		if f.mode.IsDir() {
			known[f.name] = true
		}
	}
	for _, f := range files {
		for dir := path.Dir(f.name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, directory(dir, 0o755, 0))
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all
}

// tarred makes a tar archive, in which each name has a prefix.
func tarred(files []file, prefix string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: prefix + f.name, Mode: int64(f.mode.Perm()), Uid: f.owner, Gid: f.owner, ModTime: at, Format: tar.FormatUSTAR}
		switch {
		case f.mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
			if f.mode&fs.ModeSticky != 0 {
				h.Mode |= 0o1000
			}
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(f.data))
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("packing %q: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("packing %q: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return b.Bytes(), nil
}

// gzipped has neither a name nor a time in its head. The best compression would take five times as long for a six-hundredth
// less.
func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data) // into memory
	w.Close()
	return b.Bytes()
}

func tarGz(files []file, prefix string, at time.Time) ([]byte, error) {
	b, err := tarred(files, prefix, at)
	if err != nil {
		return nil, err
	}
	return gzipped(b), nil
}

func zipped(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		if f.mode.IsDir() {
			h.Name, h.Method = f.name+"/", zip.Store
		}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err == nil {
			_, err = to.Write(f.data)
		}
		if err != nil {
			return nil, fmt.Errorf("packing %q: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return b.Bytes(), nil
}

// archives packs each program with what belongs to it.
func (r *release) archives(built []*program, _ string) error {
	for _, b := range built {
		files, err := r.bundle(b)
		if err != nil {
			return err
		}
		name := archiveName(b.platform, r.version)
		files = withParents(below(bundleName(b.platform, r.version), files))
		var packed []byte
		if b.os == "windows" {
			packed, err = zipped(files, r.time)
		} else {
			packed, err = tarGz(files, "", r.time)
		}
		if err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
		r.made[name] = packed
	}
	return nil
}

// bundleName is the directory in an archive.
func bundleName(p platform, version string) string {
	return fmt.Sprintf("rootbound_%s_%s_%s", version, p.os, p.arch)
}

func archiveName(p platform, version string) string {
	if p.os == "windows" {
		return bundleName(p, version) + ".zip"
	}
	return bundleName(p, version) + ".tar.gz"
}

// bundle is what people get who unpack an archive.
func (r *release) bundle(b *program) ([]file, error) {
	files := []file{executable(b.file(), b.data), plain("LICENSES.txt", licenses(b)), plain("parts.cdx.json", r.made[r.partsName(b)])}
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "README.zh-CN.md", "CHANGELOG.md"} {
		text, err := r.text(name)
		if err != nil {
			return nil, err
		}
		files = append(files, plain(name, text))
	}
	return slices.Concat(files, below("man/man1", r.manual), below("completions", r.complete)), nil
}

// checksums has a line for each file, as sha256sum writes and checks them.
func checksums(made map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range sortedNames(made) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(made[name]), name)
	}
	return b.Bytes()
}
