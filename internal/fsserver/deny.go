package fsserver

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/rootbound/rootbound/rootfs"
)

// Deny holds patterns of names that no tool opens, writes, moves or removes, wherever they are beneath a root, and nothing
// beneath them. They are written like lines of a .gitignore file, and match in whatever case: the last pattern that
// matches decides, and one with "!" in front spares what it matches. What they do not match by name they do not protect:
// a copy under another name, or a hard link, is read.
type Deny struct {
	rules func() *ruleSet // read when they are first asked for
	added []string        // the patterns that are not the default ones
}

// defaultDeny are keys, passwords and tokens by the names under which programs keep them. A template of a .env file is not
// denied, nor is the public half of a key outside of .ssh.
const defaultDeny = `
.ssh
.gnupg
.password-store
id_rsa
id_dsa
id_ecdsa
id_ecdsa_sk
id_ed25519
id_ed25519_sk
ssh_host_*_key
*.ppk

*.key
!*pub*.key
*.p8
*.p12
*.pfx
*.jks
*.keystore
!debug.keystore
*.kdbx
privkey*.pem
private*.pem
*[-_.]key.pem
key.pem
!*pub*.pem
*.agekey
**/sops/age/keys.txt
etc/shadow*
etc/gshadow*
**/.local/share/keyrings
**/Library/Keychains

.netrc
_netrc
.npmrc
.pypirc
.pgpass
.my.cnf
.mylogin.cnf
.htpasswd
.s3cfg
.boto
.vault-token
.git-credentials
.dockercfg
rclone.conf
*.kubeconfig
kubeconfig
**/.kube/config
**/.docker/config.json
**/.aws/credentials
**/.aws/sso/cache
**/.aws/cli/cache
**/.azure
**/gcloud/credentials.db
**/gcloud/access_tokens.db
**/gcloud/legacy_credentials
application_default_credentials.json
service-account-key.json
serviceAccountKey.json
**/.config/gh/hosts.yml
**/.config/hub
**/.config/git/credentials
**/.cargo/credentials
**/.cargo/credentials.toml
**/.gem/credentials
**/.m2/settings-security.xml
**/.gradle/gradle.properties
**/.terraform.d/credentials.tfrc.json
.terraformrc
**/composer/auth.json
**/.composer/auth.json
**/.claude/.credentials.json
**/.codex/auth.json
**/.gemini/oauth_creds.json

*.env
.envrc
.envrc.*
.env
.env.*
.env-*
.env_*
`

// templates are the words in the name of a .env file that is there to be copied and holds no secret.
var templates = []string{"example", "examples", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults", "schema", "skeleton"}

// NewDeny makes a Deny of patterns, behind the default ones if those are wanted: nil, which denies nothing, of none at all. An
// error names a pattern that can match nothing.
func NewDeny(patterns []string, withDefault bool) (*Deny, error) {
	var text strings.Builder
	if withDefault {
		text.WriteString(defaultDeny)
		for _, t := range templates {
			for _, form := range []string{".env%s", ".envrc%s"} {
				for _, sep := range []string{".", "-", "_"} {
					fmt.Fprintf(&text, "!"+form+"\n!"+form+".*\n", sep+t, sep+t)
				}
				fmt.Fprintf(&text, "!"+form+"\n", ".*."+t)
			}
			fmt.Fprintf(&text, "!%s.env\n!*[-_.]%s.env\n", t, t)
		}
	}
	for _, p := range patterns {
		if _, ok := parseRule(p, true); !ok || strings.ContainsAny(p, "\n\r") {
			return nil, fmt.Errorf("pattern %q can match no name", p)
		}
		text.WriteString(p + "\n")
	}
	if text.Len() == 0 {
		return nil, nil
	}
	return &Deny{sync.OnceValue(func() *ruleSet { return parseRules(text.String(), true) }), patterns}, nil
}

// denies reports whether a name, beneath a root and "/"-separated, is denied because of its last element. Whoever goes to
// a name asks for each directory on the way. It is for rootfs.Options and safe for concurrent use.
func (d *Deny) denies(name string) bool { return d.matching(name) != "" }

// matching returns the pattern that denies a name because of its last element, or "".
func (d *Deny) matching(name string) string {
	if d == nil {
		return ""
	}
	for _, n := range withoutBackup(name) {
		if r := d.rules().match(n, true); r != nil && !r.negated {
			return r.text
		}
	}
	return ""
}

// pattern returns the pattern that denies a name or a directory that it is in, or "" when none does.
func (d *Deny) pattern(name string) string {
	for i := range len(name) + 1 {
		if i == len(name) || name[i] == '/' {
			if p := d.matching(name[:i]); p != "" {
				return p
			}
		}
	}
	return ""
}

// withoutBackup returns what a name is without that which editors and people put around the name of a copy.
func withoutBackup(name string) []string {
	dir, base := path.Split(name)
	if n := len(base); n > 2 && base[0] == '#' && base[n-1] == '#' {
		return []string{dir + base[1:n-1]} // Emacs
	}
	names := []string{withoutBackupSuffix(name)}
	if names[0] != name && base[0] == '.' {
		names = append(names, dir+names[0][len(dir)+1:]) // Vim: .NAME.swp
	}
	return names
}

// withoutBackupSuffix cuts off what is behind.
func withoutBackupSuffix(name string) string {
	for _, suffix := range []string{"~", ".bak", ".old", ".orig", ".save", ".swp", ".swo", ".swn"} {
		if n := len(name) - len(suffix); n > 0 && strings.EqualFold(name[n:], suffix) && name[n-1] != '/' {
			return withoutBackupSuffix(name[:n])
		}
	}
	return name
}

// foldName makes names equal that some file system takes for one: letters in both cases, characters of one meaning, and
// characters that it leaves out.
func foldName(name string) string {
	plain := true
	for i := 0; i < len(name) && plain; i++ {
		plain = name[i] < 0x80 && (name[i] < 'A' || name[i] > 'Z')
	}
	if plain {
		return name
	}
	return norm.NFC.String(strings.Map(func(c rune) rune {
		switch {
		case 0x200c <= c && c <= 0x200f, 0x202a <= c && c <= 0x202e, 0x206a <= c && c <= 0x206f, c == 0xfeff:
			return -1 // HFS+
		}
		return unicode.ToLower(unicode.ToUpper(c))
	}, name))
}

// denied is the refusal of a path that rootfs has denied. It names the pattern, and who can allow it.
func (c *call) denied(path string) error {
	real := c.real(path)
	name := filepath.Base(real)
	if d, rel, inside := c.set.Match(real); inside && !d.File {
		name = filepath.ToSlash(rel)
	}
	pattern := c.deny.pattern(name)
	text := fmt.Sprintf("Access denied - %s is protected: its name matches %q, one of the patterns of files that may hold secrets. "+
		"Only the user can allow it, by starting the server with --deny '!%s'.", show(real), pattern, pattern)
	switch {
	case pattern == "":
		text = "Access denied - this name is not served: " + show(real)
	case slices.Contains(c.deny.added, pattern):
		text = fmt.Sprintf("Access denied - %s is protected: its name matches %q, which the user has denied. "+
			"Only the user can allow it, by starting the server without --deny '%s'.", show(real), pattern, pattern)
	}
	return denial{refusal{string(rootfs.Denied), text}, reasonName, real}
}
