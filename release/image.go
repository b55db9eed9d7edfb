package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is who the program is in a container: a user without rights on the host, of the number that small images mostly have.
const nobody = 65532

// image makes an image of the programs for Linux, as an archive of an OCI layout; what is in it as a tar archive for each
// platform; and a Containerfile that makes the same image of those. The image has the program, the certificates of public
// authorities, a user and a place for temporary files, and nothing else.
func (r *release) image(built []*program, work string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	any := false
	for _, b := range built {
		if b.os != "linux" {
			continue
		}
		any = true
		packed, err := r.rootfs(b)
		if err != nil {
			return err
		}
		r.made[r.rootfsName(b.arch)] = packed
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
		layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return fmt.Errorf("making the image for %s: %w", b.platform, err)
		}
		img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
		if err != nil {
			return fmt.Errorf("making the image for %s: %w", b.platform, err)
		}
		about, err := img.ConfigFile()
		if err != nil {
			return fmt.Errorf("making the image for %s: %w", b.platform, err)
		}
		about = about.DeepCopy()
		about.OS, about.Architecture, about.Created, about.Config = b.os, b.arch, v1.Time{Time: r.time}, r.config()
		about.History = []v1.History{{Created: v1.Time{Time: r.time}, CreatedBy: "release"}}
		if img, err = mutate.ConfigFile(img, about); err != nil {
			return fmt.Errorf("making the image for %s: %w", b.platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: b.os, Architecture: b.arch},
		}})
	}
	if !any {
		return nil
	}
	dir := filepath.Join(work, "image")
	root := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		MediaType: types.OCIImageIndex, Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version},
	}})
	if _, err := layout.Write(dir, root); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	var files []file
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		files = append(files, plain(filepath.ToSlash(rel), data))
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	packed, err := tarred(withParents(files), "", r.time)
	if err != nil {
		return err
	}
	r.made[fmt.Sprintf("rootbound_%s_oci.tar", r.version)] = packed
	r.made["Containerfile"], err = r.containerfile()
	return err
}

func (r *release) rootfsName(arch string) string {
	return fmt.Sprintf("rootbound_%s_linux_%s.rootfs.tar.gz", r.version, arch)
}

// config is how a container runs.
func (r *release) config() v1.Config {
	return v1.Config{
		Entrypoint: []string{"/usr/bin/rootbound"}, User: fmt.Sprintf("%d:%d", nobody, nobody), WorkingDir: "/home/nobody",
		Env: []string{"HOME=/home/nobody", "PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "rootbound", "org.opencontainers.image.description": summary, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": home, "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
		},
	}
}

// rootfs is everything that is in a container.
func (r *release) rootfs(b *program) ([]byte, error) {
	files, err := r.bundle(b)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f file) bool {
		return !strings.HasPrefix(f.name, "LICENSE") && f.name != "NOTICE" && f.name != "parts.cdx.json"
	})
	files = below("usr/share/doc/rootbound", files)
	files = append(files,
		executable("usr/bin/rootbound", b.data),
		plain("etc/passwd", fmt.Appendf(nil, "root:x:0:0:root:/:/none\nnobody:x:%d:%d:nobody:/home/nobody:/none\n", nobody, nobody)),
		plain("etc/group", fmt.Appendf(nil, "root:x:0:\nnobody:x:%d:\n", nobody)),
		plain("etc/ssl/certs/ca-certificates.crt", authorities()),
		directory("home/nobody", 0o755, nobody),
		directory("tmp", 0o777|fs.ModeSticky, 0),
		directory("proc", 0o755, 0), directory("dev", 0o755, 0), directory("sys", 0o755, 0), // where all runtimes mount something
	)
	return tarGz(withParents(files), "", r.time)
}

// authorities are the public certificate authorities, for servers on other machines (run --url). Those that are good only for some
// certificates are left out, since the file cannot say that.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory
		}
	}
	return b.Bytes()
}

var containerfile = template.Must(template.New("Containerfile").Funcs(template.FuncMap{"quote": quote}).Parse(`# The image of Rootbound {{.Version}}, made of what lies beside this file: podman build -t rootbound .
FROM scratch
ARG TARGETARCH
ADD {{.Files}} /
{{- range .Labels}}
LABEL {{.}}
{{- end}}
{{- range .Config.Env}}
ENV {{.}}
{{- end}}
USER {{.Config.User}}
WORKDIR {{.Config.WorkingDir}}
ENTRYPOINT {{quote .Config.Entrypoint}}
`))

func (r *release) containerfile() ([]byte, error) {
	config := r.config()
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(config.Labels)) {
		labels = append(labels, fmt.Sprintf("%s=%q", key, config.Labels[key]))
	}
	var b bytes.Buffer
	err := containerfile.Execute(&b, map[string]any{"Version": r.version, "Files": r.rootfsName("${TARGETARCH}"), "Labels": labels, "Config": config})
	if err != nil {
		return nil, fmt.Errorf("writing the Containerfile: %w", err)
	}
	return b.Bytes(), nil
}

func quote(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
