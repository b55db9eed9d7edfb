package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// partsName is the name of the list of what is in a program (SBOM).
func (r *release) partsName(b *program) string {
	return fmt.Sprintf("rootbound_%s_%s_%s.cdx.json", r.version, b.os, b.arch)
}

// parts writes for each program the list of what is in it, as CycloneDX. It is read from the program and not from go.mod:
// what another platform needs is not in it.
func (r *release) parts(built []*program, _ string) error {
	for _, b := range built {
		bom := cyclonedx.NewBOM()
		self := cyclonedx.Component{
			BOMRef: purl(b.info.Main.Path, b.info.Main.Version), Type: cyclonedx.ComponentTypeApplication, Name: "rootbound", Version: r.version,
			Description: summary, PackageURL: purl(b.info.Main.Path, b.info.Main.Version), Licenses: expression([]string{"Apache-2.0"}),
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(b.data))}},
			Properties: &[]cyclonedx.Property{
				{Name: "rootbound:platform", Value: b.platform.String()}, {Name: "rootbound:commit", Value: r.commit}, {Name: "rootbound:go", Value: r.golang},
			},
			ExternalReferences: &[]cyclonedx.ExternalReference{{Type: cyclonedx.ERTypeVCS, URL: home}},
		}
		bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &self}
		var all []cyclonedx.Component
		var refs []string
		for _, d := range b.mods {
			c := cyclonedx.Component{
				BOMRef: purl(d.path, d.version), Type: cyclonedx.ComponentTypeLibrary, Name: d.path, Version: d.version,
				PackageURL: purl(d.path, d.version), Licenses: expression(d.licenses),
			}
			if d.sum != "" {
				c.Properties = &[]cyclonedx.Property{{Name: "rootbound:go.sum", Value: d.sum}}
			}
			all, refs = append(all, c), append(refs, c.BOMRef)
		}
		bom.Components = &all
		bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
		var text bytes.Buffer
		if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
			return fmt.Errorf("writing the parts of %s: %w", b.platform, err)
		}
		r.made[r.partsName(b)] = text.Bytes()
	}
	return nil
}

// purl names a Go module as lists of vulnerabilities do.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

func expression(ids []string) *cyclonedx.Licenses {
	return &cyclonedx.Licenses{{Expression: strings.Join(ids, " AND ")}}
}
