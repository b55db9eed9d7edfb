package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The filter of the other architecture is held to the same tests as this one's: its own source, with the kernel's numbers of
// that architecture put in, is built for this machine, and what it writes is run by the machine of the tests.
func TestFilterOfTheOtherArchitecture(t *testing.T) {
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	if other == "" {
		return // there is no filter for this one
	}
	here, there := constants(t, runtime.GOARCH), constants(t, other)
	dir := t.TempDir()
	put := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		replaced := regexp.MustCompile(`\bunix\.([A-Z][A-Z0-9_]*)\b`).ReplaceAllStringFunc(string(text), func(word string) string {
			name := strings.TrimPrefix(word, "unix.")
			value, known := there[name]
			switch {
			case !known || strings.HasPrefix(value, "Errno(") || value == here[name]:
				return word
			case !strings.HasPrefix(name, "SYS_") && !strings.HasPrefix(name, "AUDIT_ARCH_"):
				t.Logf("%s is %s on %s and %s on %s", name, here[name], runtime.GOARCH, value, other)
			}
			return value
		})
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, []byte(replaced), 0o600); err != nil {
			t.Fatal(err)
		}
		return to
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(wd, name) }
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		in("seccomp_filter_linux.go"):                     put("seccomp_filter_linux.go"),
		in("filter_linux_test.go"):                        put("filter_linux_test.go"),
		in("seccomp_linux_" + runtime.GOARCH + ".go"):     named(t, put("seccomp_linux_"+other+".go"), runtime.GOARCH),
		in("filter_linux_" + runtime.GOARCH + "_test.go"): named(t, put("filter_linux_"+other+"_test.go"), runtime.GOARCH),
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-v", "-overlay", file, "-run", "^TestFilter$", ".")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFilter/"+other+" ") {
		t.Errorf("the filter of %s: %v\n%s", other, err, out)
	}
}

// named moves a file to a name that is of this architecture.
func named(t *testing.T, path, arch string) string {
	t.Helper()
	to := strings.NewReplacer("_amd64", "_"+arch, "_arm64", "_"+arch).Replace(path) + ".here"
	if err := os.Rename(path, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// constants returns the constants of golang.org/x/sys/unix for an architecture of Linux, by name, as they are written
// there.
func constants(t *testing.T, arch string) map[string]string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	line := regexp.MustCompile(`(?m)^\t([A-Z][A-Z0-9_]*)\s+= (\S+)$`)
	for _, name := range []string{"zsysnum_linux_" + arch + ".go", "zerrors_linux_" + arch + ".go"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			values[m[1]] = m[2]
		}
	}
	if values["SYS_OPENAT"] == "" {
		t.Fatalf("no numbers of system calls are found for %s", arch)
	}
	return values
}
