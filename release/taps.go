package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"text/template"
)

//go:embed rootbound.rb.tmpl
var formula string

var formulaTemplate = template.Must(template.New("rootbound.rb").Parse(formula))

// scoop is a manifest of Scoop: https://github.com/ScoopInstaller/Scoop/wiki/App-Manifests.
type scoop struct {
	Version      string               `json:"version"`
	Description  string               `json:"description"`
	Homepage     string               `json:"homepage"`
	License      string               `json:"license"`
	Architecture map[string]scoopFile `json:"architecture"`
	Bin          string               `json:"bin"`
	CheckVersion string               `json:"checkver"`
	AutoUpdate   scoopUpdate          `json:"autoupdate"`
}

type scoopFile struct {
	URL     string `json:"url"`
	Hash    string `json:"hash,omitempty"`
	Extract string `json:"extract_dir"`
}

type scoopUpdate struct {
	Architecture map[string]scoopFile `json:"architecture"`
	Hash         map[string]string    `json:"hash"`
}

// taps writes what Homebrew and Scoop read, if all that it names was made.
func (r *release) taps([]*program, string) error {
	archives := map[string]any{}
	for _, p := range platforms {
		name := archiveName(p, r.version)
		if r.made[name] == nil {
			fmt.Fprintf(r.progress, "leaving out rootbound.rb and rootbound.json, which need the archive of %s too\n", p)
			return nil
		}
		archives[p.os+"_"+p.arch] = map[string]string{"URL": download(r.version, name), "Sum": fmt.Sprintf("%x", sha256.Sum256(r.made[name]))}
	}
	var b bytes.Buffer
	if err := formulaTemplate.Execute(&b, map[string]any{"Version": r.version, "Summary": "Boundary around MCP servers", "Home": home, "Archives": archives}); err != nil {
		return fmt.Errorf("writing the formula for Homebrew: %w", err)
	}
	r.made["rootbound.rb"] = b.Bytes()

	manifest := scoop{
		Version: r.version, Description: summary, Homepage: home, License: "Apache-2.0", Bin: "rootbound.exe", CheckVersion: "github",
		Architecture: map[string]scoopFile{},
		AutoUpdate:   scoopUpdate{Architecture: map[string]scoopFile{}, Hash: map[string]string{"url": "$baseurl/" + sums}},
	}
	for arch, name := range map[string]string{"amd64": "64bit", "arm64": "arm64"} {
		p := platform{"windows", arch}
		file := archiveName(p, r.version)
		manifest.Architecture[name] = scoopFile{download(r.version, file), fmt.Sprintf("%x", sha256.Sum256(r.made[file])), bundleName(p, r.version)}
		manifest.AutoUpdate.Architecture[name] = scoopFile{URL: download("$version", archiveName(p, "$version")), Extract: bundleName(p, "$version")}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	if err := enc.Encode(manifest); err != nil {
		return fmt.Errorf("writing the manifest for Scoop: %w", err)
	}
	r.made["rootbound.json"] = text.Bytes()
	return nil
}

// download is where a file of a release is, once it is published.
func download(version, name string) string {
	return home + "/releases/download/v" + version + "/" + name
}
