package fsserver

import (
	"strings"
	"testing"
)

func TestDefaultDeny(t *testing.T) {
	denied := `
		.env .env.local .env.production .env.development.local .env-prod .env_prod .envrc .envrc.local .ENV .Env.Local app/.env
		a/b/c/.env prod.env docker/prod.env .env.bak .env~ .env.swp .env.old .env.production~ .env.bak.old .env.swo #.env# a/#.env# .e` + "\u200c" + `nv .env.test
		id_rsa id_ed25519 keys/id_ecdsa_sk ID_RSA id_rsa.bak id_rsa~ id_dsa.old .id_rsa.swp keys/.id_rsa.swo .id_rsa~ #id_rsa# keys/#server.key# deploy.ppk ssh_host_rsa_key etc/ssh/ssh_host_ed25519_key
		.ssh .SSH home/u/.ssh .` + "\u017f" + `sh .gnupg .password-store
		server.key tls/server.key tls/SERVER.KEY privkey.pem privkey1.pem private.pem private_key.pem server-key.pem server_key.pem
		server.key.pem key.pem AuthKey_ABC.p8 cert.p12 cert.pfx release.jks release.keystore passwords.kdbx x.agekey
		.config/sops/age/keys.txt etc/shadow etc/shadow- .local/share/keyrings u/Library/Keychains
		.netrc _netrc .npmrc web/.npmrc .pypirc .pgpass .my.cnf .mylogin.cnf .htpasswd .s3cfg .boto .vault-token .git-credentials
		.dockercfg rclone.conf .config/rclone/rclone.conf prod.kubeconfig kubeconfig .kube/config u/.kube/config .docker/config.json
		.aws/credentials u/.aws/credentials .AWS/Credentials .aws/sso/cache .aws/cli/cache .azure u/.azure
		.config/gcloud/credentials.db .config/gcloud/legacy_credentials .config/gcloud/application_default_credentials.json
		service-account-key.json serviceAccountKey.json .config/gh/hosts.yml .config/hub .config/git/credentials .cargo/credentials
		.cargo/credentials.toml .gem/credentials .m2/settings-security.xml .gradle/gradle.properties .terraform.d/credentials.tfrc.json
		.terraformrc .composer/auth.json .config/composer/auth.json .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json`
	spared := `
		.env.example .env.sample .env.template .env.dist .env.defaults .env.schema .env.example.local .env.production.example
		.env.local.sample .env-example .env_example .ENV.EXAMPLE .envrc.example example.env sample.env app.example.env web/.env.example
		.env.tmpl .env.tpl .env.example.bak .env.example.swp #.env.example# # ## .main.go.swp .~
		env env/x environment.ts environment.prod.ts environments/environment.ts .environment env.ts env.d.ts dotenv.js .envfile
		src/env.rs venv .venv printenv.sh config.env.js
		id_rsa.pub id_ed25519.pub keys/id_ecdsa.pub my_id_rsa_notes.md id_rsa.go identity.go
		cert.pem ca.pem fullchain.pem chain.pem server.pem public.pem public_key.pem pubkey.pem key.pem.md public.key pub.key
		server.crt server.csr keys.go key.go keyboard.json monkey.pem hotkey.pem debug.keystore
		keys.txt age/keys.txt shadow.css src/shadow.go etc/hosts shadow
		.npmignore npmrc.md netrc.go .yarnrc.yml .gitconfig .gitignore .git/config .dockerignore
		config .kube .kube/cache k8s/config docker/config.json config.json credentials credentials.go credentials/x aws/credentials.md
		.aws .aws/config .aws/cli/alias .config .config/gh .config/gh/config.yml .config/gcloud/configurations .gradle .m2/settings.xml
		gradle.properties auth.json composer.json .codex/config.toml .claude/settings.json terraform.tfstate service-account.yaml
		.env.d.ts.example tokens.css secrets.go password.go README.md sshd.go .sshd ssh/config`
	d, err := NewDeny(nil, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(denied) {
		if !d.denies(name) {
			t.Errorf("%q is not denied", name)
		}
		if got := d.pattern(name + "/in/it"); got == "" {
			t.Errorf("what is in %q is not denied", name)
		}
	}
	for _, name := range strings.Fields(spared) {
		if p := d.pattern(name); p != "" {
			t.Errorf("%q is denied by %q", name, p)
		}
	}
}

func TestDenyPatterns(t *testing.T) {
	d, err := NewDeny([]string{"*.secret", "/build", "!.npmrc", "data/**/raw", "caf\u00e9"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a.secret": "*.secret", "x/A.SECRET/y": "*.secret", "build": "/build", "build/x": "/build", "x/build": "",
		"cafe\u0301": "caf\u00e9", "x/CAF\u00c9": "caf\u00e9", ".npmrc": "", "data/raw": "data/**/raw", "data/1/2/raw/x": "data/**/raw", ".env": ".env",
	} {
		if got := d.pattern(name); got != want {
			t.Errorf("%q: denied by %q, want %q", name, got, want)
		}
	}
	if d, err = NewDeny([]string{"x"}, false); err != nil || d.denies(".env") || !d.denies("X") {
		t.Errorf("without the default: %v, %v", d.pattern(".env"), err)
	}
	for _, bad := range []string{"", "#x", "[a", `x\`, "/", "!", "a\nb", "\xff"} {
		if _, err := NewDeny([]string{bad}, false); err == nil {
			t.Errorf("pattern %q: no error", bad)
		}
	}
	if (*Deny)(nil).denies(".env") {
		t.Error("a nil Deny denies")
	}
}
