package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// Who makes a release again, in another place and with settings of his own, has the same bytes.
func TestReproducible(t *testing.T) {
	one := made(t)
	t.Setenv("GOFLAGS", "-tags=other -ldflags=-X=main.x=y")
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("GOAMD64", "v2")
	t.Setenv("TZ", "Asia/Tokyo")
	if *long {
		t.Setenv("GOCACHE", filepath.Join(scratch, "cache"))
	}
	two, err := makeIn("another/place", nil)
	if err != nil {
		t.Fatal(err)
	}
	names := func(dir string) (all []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	if a, b := names(one), names(two); !slices.Equal(a, b) || len(a) < 9 {
		t.Fatalf("once there are %q, and once %q", a, b)
	}
	for _, name := range names(one) {
		if !bytes.Equal(read(t, one, name), read(t, two, name)) {
			t.Errorf("%s is not the same twice", name)
		}
	}
}

func TestSums(t *testing.T) {
	dir := made(t)
	var names []string
	for line := range strings.Lines(string(read(t, dir, sums))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if want := fmt.Sprintf("%x", sha256.Sum256(read(t, dir, name))); sum != want {
			t.Errorf("the sum of %s is %s, want %s", name, sum, want)
		}
		names = append(names, name)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(entries)-1 {
		t.Errorf("there are sums of %q, and %d files", names, len(entries))
	}
}

// bundled is the directory that an archive unpacks to.
func bundled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	name := archiveName(host, version)
	runs(t, 0, os.Environ(), "tar", "-xzf", filepath.Join(made(t), name), "-C", dir)
	return filepath.Join(dir, bundleName(host, version))
}

func TestArchive(t *testing.T) {
	dir := bundled(t)
	demonstrates(t, os.Environ(), filepath.Join(dir, "rootbound"))
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "parts.cdx.json", "completions/rootbound.fish", "completions/rootbound.ps1"} {
		if len(read(t, dir, name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}

	// A shell reads the completion, and completes with it.
	script := `source completions/rootbound.bash; COMP_WORDS=(rootbound ver); COMP_CWORD=1; COMP_LINE="rootbound ver"; COMP_POINT=13; COMP_TYPE=9
		_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=1; cur=ver; prev=rootbound; }; __start_rootbound; printf '%s\n' "${COMPREPLY[@]}"`
	bash := exec.CommandContext(t.Context(), "bash", "-c", script)
	bash.Dir, bash.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := bash.CombinedOutput(); err != nil || !strings.Contains(string(out), "verify") || !strings.Contains(string(out), "version") {
		t.Errorf("bash completes ver to %q, %v", out, err)
	}

	// Each command has a page, with all of its options and how it ends.
	page := string(read(t, dir, "man/man1/rootbound-run.1"))
	for _, want := range []string{`.TH "ROOTBOUND-RUN" "1" "Nov 2026" "Rootbound ` + version + `" "Rootbound"`, `\fB--root\fP`, `\fB--strict-protocol\fP`, "Exit codes: the server's own."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of rootbound run has no %s:\n%s", want, page)
		}
	}
	if page := string(read(t, dir, "man/man1/rootbound-version.1")); !strings.Contains(page, "Exit codes: 0 done") {
		t.Errorf("the page of rootbound version does not say how it ends:\n%s", page)
	}

	// The licenses of all that is in the program are there, by their text.
	texts := string(read(t, dir, "LICENSES.txt"))
	for _, want := range []string{"Go and its standard library", "github.com/spf13/cobra", "Permission is hereby granted, free of charge", "Redistribution and use in source and binary forms"} {
		if !strings.Contains(texts, want) {
			t.Errorf("LICENSES.txt has no %q", want)
		}
	}
}

// The list of parts has what the go command says is in the program, each with a license.
func TestParts(t *testing.T) {
	dir := bundled(t)
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(read(t, dir, "parts.cdx.json")), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "rootbound")
	var want, got []string
	for line := range strings.Lines(runs(t, 0, os.Environ(), "go", "version", "-m", program)) {
		if fields := strings.Fields(line); fields[0] == "dep" {
			want = append(want, fields[1]+" "+fields[2]+" "+fields[3])
		}
	}
	for _, c := range *bom.Components {
		if c.Licenses == nil || (*c.Licenses)[0].Expression == "" {
			t.Errorf("%s has no license", c.Name)
		}
		if c.Name != "std" {
			got = append(got, c.Name+" "+c.Version+" "+(*c.Properties)[0].Value)
		}
	}
	if !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("the list has %q, and the program %q", got, want)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(read(t, dir, "rootbound"))); (*bom.Metadata.Component.Hashes)[0].Value != sum {
		t.Errorf("the list is for another program than the one with the sum %s", sum)
	}
}

func TestDebianPackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		missing(t, "installing a Debian package: there is no dpkg")
	}
	name := filepath.Join(made(t), fmt.Sprintf("rootbound_%s_%s.deb", version, host.arch))
	root := t.TempDir()
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	dpkg := func(args ...string) string {
		return runs(t, 0, env, "dpkg", append([]string{"--root=" + root, "--log=" + os.DevNull}, args...)...)
	}
	owner := os.Getuid() == 0 // who else cannot give files to root, as an installation does
	if owner {
		dpkg("--install", name)
		if out := dpkg("--verify", "rootbound"); out != "" {
			t.Errorf("what is installed is not what the package says:\n%s", out)
		}
	} else {
		runs(t, 0, env, "dpkg", "--extract", name, root)
	}
	demonstrates(t, os.Environ(), filepath.Join(root, "usr/bin/rootbound"))
	for _, name := range []string{"usr/share/man/man1/rootbound-fs.1.gz", "usr/share/bash-completion/completions/rootbound", "usr/share/doc/rootbound/copyright"} {
		if len(read(t, root, name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if !owner {
		return
	}
	dpkg("--remove", "rootbound")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/rootbound")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is removed, and the program is there: %v", err)
	}
}

// The image is valid, has what lies beside the Containerfile, and the demo runs in it as in a container: in a directory that is all
// there is, as a user without rights, with /proc and /dev/null.
func TestImage(t *testing.T) {
	dir := made(t)
	unpacked := t.TempDir()
	runs(t, 0, os.Environ(), "tar", "-xf", filepath.Join(dir, "rootbound_"+version+"_oci.tar"), "-C", unpacked)
	index, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	image := imageFor(t, index, host)
	about, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	containerfile := string(read(t, dir, "Containerfile"))
	for _, line := range []string{
		"USER " + about.Config.User, "WORKDIR " + about.Config.WorkingDir, `ENTRYPOINT ["` + about.Config.Entrypoint[0] + `"]`,
		"ENV " + about.Config.Env[0], "ADD rootbound_" + version + "_linux_${TARGETARCH}.rootfs.tar.gz /",
	} {
		if !strings.Contains(containerfile, line+"\n") {
			t.Errorf("the image and the Containerfile differ: that has no %q:\n%s", line, containerfile)
		}
	}
	if about.Config.User != "65532:65532" {
		t.Errorf("the image runs as %s", about.Config.User)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the image has %d layers, %v", len(layers), err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(dir, fmt.Sprintf("rootbound_%s_linux_%s.rootfs.tar.gz", version, host.arch))
	if sum := fmt.Sprintf("%x", sha256.Sum256(read(t, dir, filepath.Base(files)))); digest.Hex != sum {
		t.Errorf("the image has other files (%s) than what the Containerfile adds (%s)", digest.Hex, sum)
	}

	root := t.TempDir()
	runs(t, 0, os.Environ(), "tar", "-xzf", files, "-C", root, "--no-same-owner")
	namespaces := []string{"--mount", "--pid", "--fork"}
	user := "65532:65532"
	if os.Getuid() != 0 {
		namespaces, user = append(namespaces, "--user", "--map-root-user"), "0:0"
	}
	const mount = `mount -t proc proc "$0/proc" && touch "$0/dev/null" && mount --bind /dev/null "$0/dev/null"`
	if out, err := exec.CommandContext(t.Context(), "unshare", append(namespaces, "sh", "-c", mount, root)...).CombinedOutput(); err != nil {
		missing(t, "running the image: this system does not let its user mount anything: "+string(out))
	}
	for _, tt := range []struct {
		command string
		check   func(*testing.T, string)
	}{{"demo", checkDemo}, {"version", checkVersion}} {
		script := mount + ` && cd "$0" && exec chroot --userspec="$1" "$0" ` + about.Config.Entrypoint[0] + " " + tt.command
		tt.check(t, runs(t, 0, append(about.Config.Env, "PATH="+os.Getenv("PATH")), "unshare", append(namespaces, "sh", "-c", script, root, user)...))
	}
}

func imageFor(t *testing.T, index v1.ImageIndex, p platform) v1.Image {
	t.Helper()
	top, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	inner, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	list, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Manifests {
		if m.Platform.OS == p.os && m.Platform.Architecture == p.arch {
			image, err := inner.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("there is no image for %s in %v", p, list.Manifests)
	return nil
}

// What a program must not be stops a release.
func TestPrograms(t *testing.T) {
	made(t)
	r := &release{repo: filepath.Join(scratch, "one", "checkout"), progress: io.Discard}
	fresh := func() *program {
		b, err := r.build(host, filepath.Join(t.TempDir(), "bin"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := fresh()
	for name, tt := range map[string]struct {
		change func(*program)
		want   string
	}{
		"size":      {func(b *program) { b.data = append(b.data, make([]byte, maxSize)...) }, "and may have"},
		"directory": {func(b *program) { b.data = append(b.data, []byte(r.repo+"/internal/cli/cli.go")...) }, "which is a directory of this machine"},
		"cgo":       {func(b *program) { setting(b, "CGO_ENABLED", "1") }, `CGO_ENABLED="1"`},
		"paths":     {func(b *program) { setting(b, "-trimpath", "") }, `-trimpath=""`},
		"changes":   {func(b *program) { setting(b, "vcs.modified", "true") }, "the checkout was changed"},
		"commit":    {func(b *program) { setting(b, "vcs.revision", "0") }, "the checkout was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			info := *good.info
			info.Settings = slices.Clone(info.Settings)
			b := &program{platform: host, data: slices.Clone(good.data), info: &info}
			if err := r.check(b); err != nil {
				t.Fatalf("what is good is refused: %v", err)
			}
			tt.change(b)
			if err := r.check(b); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it ends with %v, want %q", err, tt.want)
			}
		})
	}
	dynamic, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dynamic)
	if err != nil {
		t.Fatal(err)
	}
	if err := static(text); err == nil || !strings.Contains(err.Error(), "it is not static") {
		t.Errorf("a program that needs libraries ends with %v", err)
	}
}

func setting(b *program, key, value string) {
	for i := range b.info.Settings {
		if b.info.Settings[i].Key == key {
			b.info.Settings[i].Value = value
		}
	}
}

// What cannot be made leaves everything as it was.
func TestRefusals(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "checkout")
	if err := copyCheckout(repo); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "new.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := &release{repo: repo, platforms: []platform{host}, progress: io.Discard}
	if err := r.make(filepath.Join(repo, "..", "out")); err == nil || !strings.Contains(err.Error(), "there are changes in no commit") || !strings.Contains(err.Error(), "new.go") {
		t.Errorf("a checkout with changes ends with %v", err)
	}
	mine := t.TempDir()
	if err := os.WriteFile(filepath.Join(mine, "thesis.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.make(mine); err == nil || !strings.Contains(err.Error(), "something in it that is no release") {
		t.Errorf("a directory of somebody ends with %v", err)
	}
	read(t, mine, "thesis.txt")
	for _, sum := range []string{"", "0  other.txt\n"} { // whoever checks a download has such a file, too
		if err := os.WriteFile(filepath.Join(mine, sums), []byte(sum), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.make(mine); err == nil || !strings.Contains(err.Error(), "something in it that is no release") {
			t.Errorf("a directory of somebody with sums ends with %v", err)
		}
		read(t, mine, "thesis.txt")
	}

	var errs bytes.Buffer
	for _, args := range [][]string{{"--only", "plan9/amd64"}, {"extra"}, {"--what"}} {
		if code := run(args, io.Discard, &errs); code != 2 {
			t.Errorf("release %s ends with %d", strings.Join(args, " "), code)
		}
	}
	if !strings.Contains(errs.String(), `choosing the platform "plan9/amd64": there are linux/amd64, linux/arm64,`) {
		t.Errorf("it says %s", &errs)
	}
}

// A release takes the place of the one before as a whole.
func TestReplacement(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "dist")
	for _, name := range []string{"old", "new"} {
		if err := replaceable(dir); err != nil {
			t.Fatal(err)
		}
		if err := writeAll(dir, map[string][]byte{sums: []byte("0  " + name + "\n"), name: nil}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[1].Name() != "new" {
		t.Errorf("there is %v, %v", entries, err)
	}
	if beside, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(beside) != 1 {
		t.Errorf("beside it there is %v, %v", beside, err)
	}
}

func TestChoose(t *testing.T) {
	for list, want := range map[string]string{
		"": "[linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64]", "windows/arm64,linux/amd64": "[linux/amd64 windows/arm64]",
		"host": "[" + host.String() + "]",
	} {
		got, err := choose(list)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("choose(%q) = %v, %v, want %s", list, got, err, want)
		}
	}
}

func TestVersions(t *testing.T) {
	for golang, want := range map[string][2]string{
		"v1.2.3":       {"1.2.3", "1.2.3"},
		"v1.2.3+dirty": {"1.2.3-dirty", "1.2.3~dirty"},
		"v1.2.3-rc.1":  {"1.2.3-rc.1", "1.2.3~rc.1"},
		"v0.0.0-20261130150445-3ddfd943564c+dirty": {"0.0.0-20261130150445-3ddfd943564c.dirty", "0.0.0~20261130150445.3ddfd943564c.dirty"},
	} {
		if got := packageVersion(golang); got != want[0] {
			t.Errorf("packageVersion(%q) = %q, want %q", golang, got, want[0])
		}
		if got := debianVersion(want[0]); got != want[1] {
			t.Errorf("debianVersion(%q) = %q, want %q", want[0], got, want[1])
		}
	}
}

func TestLicenses(t *testing.T) {
	for text, want := range map[string]string{
		"MIT License\n\nPermission is hereby granted, free of charge, to\nany person obtaining a copy":                                                                      "[MIT]",
		"Redistribution and use in source and binary forms, with or without":                                                                                                "[BSD-2-Clause]",
		"Redistribution and use in source and binary\n// forms\n * nor may it be used to endorse or promote products":                                                       "[BSD-3-Clause]",
		"                              Apache License\n                        Version 2.0, January 2004":                                                                   "[Apache-2.0]",
		"Permission to use, copy, modify, and/or distribute this software for any purpose\nwith or without fee is hereby granted, provided that the above copyright notice": "[ISC]",
		"GNU GENERAL PUBLIC LICENSE": "[] and one that is not ours to give",
		"All rights reserved.":       "[]",
	} {
		ids, other := classify([]byte(text))
		got := fmt.Sprint(ids)
		if other {
			got += " and one that is not ours to give"
		}
		if got != want {
			t.Errorf("classify(%q) = %s, want %s", text, got, want)
		}
	}
	mixed := &dependency{path: "example.test/mixed", texts: []licenseText{
		{"LICENSE", []byte("Permission is hereby granted, free of charge, to any person obtaining a copy")},
		{"LICENSE-3RD-PARTY.md", []byte("Apache License\nVersion 2.0")},
	}}
	if err := mixed.judge(); err != nil || fmt.Sprint(mixed.licenses) != "[MIT]" {
		t.Errorf("a module with texts of others has %v, %v", mixed.licenses, err)
	}
	for want, d := range map[string]*dependency{
		"none is known":           {path: "example.test/secret", texts: []licenseText{{"LICENSE", []byte("All rights reserved.")}}},
		"may not be in a program": {path: "example.test/free", texts: []licenseText{{"COPYING", []byte("GNU General Public License")}}},
	} {
		if err := d.judge(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s ends with %v, want %q", d.path, err, want)
		}
	}
}

// What Homebrew and Scoop read has the sums of the archives, and is made only if all of those are.
func TestTaps(t *testing.T) {
	r := &release{made: map[string][]byte{}, origin: origin{version: version}, progress: io.Discard}
	for _, p := range platforms[1:] {
		r.made[archiveName(p, version)] = []byte(p.String())
	}
	if err := r.taps(nil, ""); err != nil || r.made["rootbound.rb"] != nil {
		t.Errorf("with an archive missing: %v", err)
	}
	r.made[archiveName(platforms[0], version)] = []byte(platforms[0].String())
	if err := r.taps(nil, ""); err != nil {
		t.Fatal(err)
	}
	formula := string(r.made["rootbound.rb"])
	for _, p := range platforms[:4] {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(p.String())))
		pair := fmt.Sprintf("      url \"%s/releases/download/v1.2.3/rootbound_1.2.3_%s_%s.tar.gz\"\n      sha256 \"%s\"\n", home, p.os, p.arch, sum)
		if !strings.Contains(formula, pair) {
			t.Errorf("the formula has no\n%s\n%s", pair, formula)
		}
	}
	var manifest scoop
	if err := json.Unmarshal(r.made["rootbound.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	for arch, name := range map[string]string{"amd64": "64bit", "arm64": "arm64"} {
		want := scoopFile{
			home + "/releases/download/v1.2.3/rootbound_1.2.3_windows_" + arch + ".zip", fmt.Sprintf("%x", sha256.Sum256([]byte("windows/"+arch))),
			"rootbound_1.2.3_windows_" + arch,
		}
		if got := manifest.Architecture[name]; got != want {
			t.Errorf("for %s there is %v, want %v", name, got, want)
		}
	}
}

func TestZip(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	files := withParents(below("top", []file{executable("rootbound.exe", []byte("program")), plain("man/man1/a.1", []byte("page"))}))
	packed, err := zipped(files, at)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if !f.Modified.Equal(at) {
			t.Errorf("%s is of %s", f.Name, f.Modified)
		}
		got = append(got, fmt.Sprintf("%s %s %s", f.Mode(), f.Name, text))
	}
	want := []string{
		"drwxr-xr-x top/ ", "drwxr-xr-x top/man/ ", "drwxr-xr-x top/man/man1/ ", "-rw-r--r-- top/man/man1/a.1 page", "-rwxr-xr-x top/rootbound.exe program",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the archive has %q, want %q", got, want)
	}
}

// Everything in an archive is of root and of the time of the release, whoever makes it.
func TestOwnersAndTimes(t *testing.T) {
	f, err := gzip.NewReader(bytes.NewReader(read(t, made(t), archiveName(host, version))))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r := tar.NewReader(f); ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.UTC().Format("2006-01-02T15:04:05Z") != "2026-11-30T12:00:00Z" {
			t.Errorf("%s is of %d:%d %q, %s", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
	}
	if n < 20 || !f.ModTime.IsZero() || f.Name != "" {
		t.Errorf("it has %d files, and its head the time %s and the name %q", n, f.ModTime, f.Name)
	}
}
