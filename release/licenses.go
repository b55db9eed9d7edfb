package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// dependency is a module of somebody else in a program, or Go itself.
type dependency struct {
	path, version string
	sum           string // as go.sum has it; empty for Go
	licenses      []string
	texts         []licenseText
}

type licenseText struct {
	name string // below the module
	text []byte
}

// kinds are the licenses that may be in a program, by their SPDX names, with sentences that are in no other of them. A text
// in which none is known stops the release: then a person looks.
var kinds = []struct {
	id        string
	sentences []string
	not       string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}, ""},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}, ""},
	{"ISC", []string{"for any purpose with or without fee is hereby granted, provided that the above copyright notice"}, ""},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "be used to endorse or promote products"}, ""},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}, "be used to endorse or promote products"},
}

// judged are modules in whose texts there is a license that may not be in a program of ours, and why it is none of what is in
// the program.
var judged = map[string]string{
	"kernel.org/pub/linux/libs/security/libcap/psx": "its license is BSD or GPL, as the user likes",
	"modernc.org/sqlite":                            "its list of others has the MPL for a module that is linked into no program",
}

var (
	licenseFile = regexp.MustCompile(`(?i)^(LICEN[CS]E|COPYING|NOTICE|PATENTS)([._-].*)?$`)
	ofOthers    = regexp.MustCompile(`(?i)3RD-PARTY|THIRD-PARTY`) // what a module has of others, whose licenses are not its own
	copyleft    = regexp.MustCompile(`gnu (lesser |library |affero )?general public license|mozilla public license`)
	blanks      = regexp.MustCompile(`[\s*#/]+`)
)

// classify returns the licenses that a text has.
func classify(text []byte) (ids []string, other bool) {
	flat := strings.ToLower(blanks.ReplaceAllString(string(text), " "))
	for _, k := range kinds {
		all := !slices.ContainsFunc(k.sentences, func(s string) bool { return !strings.Contains(flat, s) })
		if all && (k.not == "" || !strings.Contains(flat, k.not)) && !slices.Contains(ids, k.id) {
			ids = append(ids, k.id)
		}
	}
	return ids, copyleft.MatchString(flat)
}

// dependencies finds what a program is made of, with its licenses: in the directory of each package that is linked, and
// those above it in its module.
func (r *release) dependencies(b *program) ([]dependency, error) {
	const format = `{{if .Standard}}{{else if .Module.Main}}{{else}}{{.Module.Path}}	{{.Module.Version}}	{{.Module.Dir}}	{{.Dir}}{{end}}`
	out, err := r.output(b.env(), "go", "list", "-mod=readonly", "-deps", "-f", format, "./cmd/rootbound")
	if err != nil {
		return nil, err
	}
	found := map[string]*dependency{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 4 {
			continue
		}
		d := found[fields[0]]
		if d == nil {
			d = &dependency{path: fields[0], version: fields[1]}
			found[d.path] = d
		}
		if err := d.read(fields[2], fields[3]); err != nil {
			return nil, err
		}
	}
	var all []dependency
	for _, m := range b.info.Deps {
		d := found[m.Path]
		if d == nil || m.Replace != nil || d.version != m.Version {
			return nil, fmt.Errorf("finding the license of %s %s: the program has it, and go list does not", m.Path, m.Version)
		}
		d.sum = m.Sum
		all = append(all, *d)
	}
	golang, err := r.output(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	root := strings.TrimSpace(string(golang))
	std := &dependency{path: "std", version: strings.TrimPrefix(b.info.GoVersion, "go")}
	if err := std.read(root, root); err != nil {
		return nil, err
	}
	all = append(all, *std)
	for i := range all {
		if err := all[i].judge(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b dependency) int { return cmp.Compare(a.path, b.path) })
	return all, nil
}

// read adds the licenses of a package in dir, and those above it up to the module's root.
func (d *dependency) read(root, dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("reading the licenses of %s: %w", d.path, err)
		}
		for _, e := range entries {
			rel, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
			if err != nil {
				return fmt.Errorf("reading the licenses of %s: %w", d.path, err)
			}
			name := filepath.ToSlash(rel)
			if !e.Type().IsRegular() || !licenseFile.MatchString(e.Name()) || strings.HasSuffix(name, ".go") ||
				slices.ContainsFunc(d.texts, func(t licenseText) bool { return t.name == name }) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return fmt.Errorf("reading the licenses of %s: %w", d.path, err)
			}
			d.texts = append(d.texts, licenseText{name, text})
		}
		if dir == root || !strings.HasPrefix(dir, root) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// judge finds out which licenses a module has.
func (d *dependency) judge() error {
	slices.SortFunc(d.texts, func(a, b licenseText) int { return cmp.Compare(a.name, b.name) })
	for _, t := range d.texts {
		ids, other := classify(t.text)
		if other && judged[d.path] == "" {
			return fmt.Errorf("reading the licenses of %s: %s is one that may not be in a program of ours", d.path, t.name)
		}
		if ofOthers.MatchString(t.name) {
			continue
		}
		for _, id := range ids {
			if !slices.Contains(d.licenses, id) {
				d.licenses = append(d.licenses, id)
			}
		}
	}
	if len(d.licenses) == 0 {
		return fmt.Errorf("reading the licenses of %s: %w", d.path, errUnknownLicense)
	}
	slices.Sort(d.licenses)
	return nil
}

var errUnknownLicense = errors.New("none is known: see which it is, and whether it may be in a program of ours")

// licenses is one text with those of all that is in a program.
func licenses(b *program) []byte {
	var to bytes.Buffer
	to.WriteString("Rootbound is licensed under the Apache License 2.0 (LICENSE). In the program there is also what follows, by others.\n")
	for _, d := range b.mods {
		name := d.path
		if name == "std" {
			name = "Go and its standard library"
		}
		for _, t := range d.texts {
			fmt.Fprintf(&to, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 100), name, d.version, t.name, bytes.TrimSpace(t.text))
		}
	}
	return to.Bytes()
}

// text reads a file of the checkout.
func (r *release) text(name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.repo, name))
	if err != nil {
		return nil, fmt.Errorf("reading what goes into packages: %w", err)
	}
	return text, nil
}
