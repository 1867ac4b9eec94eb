package workflows

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRelease makes the archive of one platform twice, and follows its README. Its short form has neither the
// program nor status, which take long to compile.
func TestRelease(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	name := fmt.Sprintf("persia_1.2.3-trial_%s_%s", runtime.GOOS, runtime.GOARCH)
	programs := []string{"preflight", "preview-comment"}
	if *long {
		programs = append(programs, "status")
	}
	dist := t.TempDir()
	release := func(version string) (string, error) {
		command := exec.Command(filepath.Join(repository, "scripts", "release.sh"), version)
		command.Env = append(os.Environ(), "PLATFORMS="+platform, "PROGRAMS="+strings.Join(programs, " "), "DIST="+dist, "GITHUB_REF_TYPE=")
		output, err := command.CombinedOutput()
		return string(output), err
	}

	sandbox := []byte("the sandbox's archive")
	require.NoError(t, os.WriteFile(filepath.Join(dist, "persia-toolchain.tar.gz"), sandbox, 0o600))
	var archives, bills, sums [2][]byte
	for i := range archives {
		output, err := release("v1.2.3-trial")
		require.NoError(t, err, output)
		archives[i], err = os.ReadFile(filepath.Join(dist, name+".tar.gz"))
		require.NoError(t, err)
		bills[i], err = os.ReadFile(filepath.Join(dist, name+"_preview-comment.cdx.json"))
		require.NoError(t, err)
		sums[i], err = os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
		require.NoError(t, err)
	}
	assert.Equal(t, string(bills[0]), string(bills[1]))
	assert.Equal(t, string(sums[0]), string(sums[1]), "the same commit makes the same files")
	assert.Equal(t, sha256.Sum256(archives[0]), sha256.Sum256(archives[1]), "the same commit makes the same bytes")

	assert.Contains(t, string(sums[0]), fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archives[0]), name))
	assert.Contains(t, string(sums[0]), fmt.Sprintf("%x  %s_preview-comment.cdx.json\n", sha256.Sum256(bills[0]), name))
	assert.Contains(t, string(sums[0]), fmt.Sprintf("%x  persia-toolchain.tar.gz\n", sha256.Sum256(sandbox)))
	assert.Equal(t, 2+len(programs), strings.Count(string(sums[0]), "\n"), "two archives, and a bill of each program")
	assertBill(t, bills[0])
	notes, err := os.ReadFile(filepath.Join(dist, "NOTES.md"))
	require.NoError(t, err)
	assert.Contains(t, string(notes), "### Added")
	want := []string{name + "/", name + "/LICENSE", name + "/Pulumi.yaml", name + "/README.persia.md", name + "/bin/"}
	for _, program := range programs {
		want = append(want, name+"/bin/"+program)
	}
	want = append(want, name+"/sample/", name+"/sample/Pulumi.dev.yaml", name+"/stack.schema.json")
	assert.Equal(t, want, entries(t, filepath.Join(dist, name+".tar.gz")))

	command := exec.Command("tar", "-xzOf", filepath.Join(dist, name+".tar.gz"), name+"/Pulumi.yaml")
	project, err := command.Output()
	require.NoError(t, err)
	assert.Contains(t, string(project), "\n    binary: bin/persia\n", "Pulumi runs the released program")
	assert.NotContains(t, string(project), "buildTarget:")

	assertFollowsReadme(t, filepath.Join(dist, name+".tar.gz"), programs)

	output, err := release("1.2")
	require.Error(t, err)
	assert.Contains(t, output, "1.2 is no version: write one like v1.2.3")
}

// assertFollowsReadme unpacks an archive in an empty folder and, on a machine with no credentials
// and no other programs, runs what its README says that needs neither.
func assertFollowsReadme(t *testing.T, archive string, programs []string) {
	t.Helper()
	dir := t.TempDir()
	output, err := exec.Command("tar", "-xzf", archive, "-C", dir, "--strip-components", "1").CombinedOutput()
	require.NoError(t, err, string(output))
	readme, err := os.ReadFile(filepath.Join(dir, "README.persia.md"))
	require.NoError(t, err)
	for _, named := range regexp.MustCompile(`\bbin/([a-z-]+)`).FindAllStringSubmatch(string(readme), -1) {
		assert.Contains(t, []string{"preflight", "preview-comment", "status"}, named[1], "README.persia.md names a program")
	}
	sample := regexp.MustCompile(`(?m)^    cp (\S+) \.`).FindStringSubmatch(string(readme))
	require.NotNil(t, sample)
	text, err := os.ReadFile(filepath.Join(dir, sample[1]))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(sample[1])), text, 0o600))

	run := func(program string, args ...string) (string, int) {
		command := exec.Command(filepath.Join(dir, "bin", program), args...)
		command.Dir, command.Env = dir, []string{"HOME=" + t.TempDir(), "PATH=" + t.TempDir()}
		output, err := command.CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			require.NoError(t, err)
		}
		return string(output), command.ProcessState.ExitCode()
	}
	says, status := run("preflight", "--stack", "dev", "--offline")
	assert.Equal(t, 1, status, "there are no credentials")
	assert.Regexp(t, `(?m)^ok +stack file +Pulumi.dev.yaml is valid: its \d+ pods fit on 3 nodes$`, says)
	assert.Contains(t, says, "gcloud auth application-default login")
	for _, program := range programs {
		says, status = run(program, "--help")
		assert.Equal(t, 0, status, program)
		assert.Contains(t, says, "Usage: ", program)
	}
}

// `make test` makes a release of few programs for this platform, `make nightly` one of all programs for all.
var long = flag.Bool("long", false, "release all programs for all platforms")

// TestReleaseRecordsSandbox: the commit of a release records its sandbox command. Other commits need not: a
// command that is recorded for other sources is never used.
func TestReleaseRecordsSandbox(t *testing.T) {
	const recorded, other = "4f2 a1b go1.26.8 linux/amd64", "4f2 c3d go1.26.8 linux/amd64"
	for name, test := range map[string]struct{ changelog, record, want string }{
		"a release":                    {"# Changelog\n\n## [1.2.3] - 2026-11-24\n\n## [1.2.2] - 2026-11-01\n", recorded, ""},
		"a release of other sources":   {"# Changelog\n\n## [1.2.3] - 2026-11-24\n", other, "make toolchain-archive"},
		"a release by another Go":      {"## [1.2.3] - 2026-11-24\n", "4f2 a1b go1.27.1 linux/amd64", "make toolchain-archive"},
		"a release without a record":   {"## [1.2.3] - 2026-11-24\n", "", "make toolchain-archive"},
		"a release of another machine": {"## [1.2.3] - 2026-11-24\n", "4f2 a1b go1.26.8 linux/arm64", "make toolchain-archive"},
		"before a release":             {"## [Unreleased]\n\n## [1.2.3] - 2026-11-24\n", other, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkSandboxRecord(test.changelog, test.record, "a1b go1.26.8 linux/amd64")
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
		})
	}

	changelog, err := os.ReadFile(filepath.Join(repository, "CHANGELOG.md"))
	require.NoError(t, err)
	record, err := os.ReadFile(filepath.Join(repository, "sandbox", "toolchain", "sandbox.sha256"))
	require.NoError(t, err)
	sources, err := exec.Command(filepath.Join(repository, "scripts", "sandbox-sources.sh")).Output()
	require.NoError(t, err)
	// The release workflow runs on this platform, and with the Go that go.mod names.
	digest, _, _ := strings.Cut(string(sources), " ")
	assert.NoError(t, checkSandboxRecord(string(changelog), string(record), digest+" "+toolchainOf(t, "go.mod")+" linux/amd64"))
}

// checkSandboxRecord returns an error if the changelog begins with a release, and sandbox.sha256 records a command
// of other sources.
func checkSandboxRecord(changelog, record, sources string) error {
	heading := regexp.MustCompile(`(?m)^## \[(.*)\]`).FindStringSubmatch(changelog)
	if heading == nil || heading[1] == "Unreleased" {
		return nil
	}
	if _, recorded, _ := strings.Cut(strings.TrimSpace(record), " "); recorded != sources {
		return fmt.Errorf("sandbox/toolchain/sandbox.sha256 records %q, and the release %s is of %q: run `make toolchain-archive`, and commit the file with the release",
			recorded, heading[1], sources)
	}
	return nil
}

// TestBillOfMaterials compares the bill of materials of each released program with the modules that Go
// recorded in it.
func TestBillOfMaterials(t *testing.T) {
	dist := t.TempDir()
	command := exec.Command(filepath.Join(repository, "scripts", "release.sh"), "v1.2.3-trial")
	command.Env = append(os.Environ(), "DIST="+dist, "GITHUB_REF_TYPE=")
	released := 4 * 4
	if !*long {
		command.Env = append(command.Env, "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "PROGRAMS=preflight")
		released = 1
	}
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	archives, err := filepath.Glob(filepath.Join(dist, "*.tar.gz"))
	require.NoError(t, err)
	compared := 0
	for _, archive := range archives {
		for _, entry := range entries(t, archive) {
			name, program, isProgram := strings.Cut(entry, "/bin/")
			if !isProgram || program == "" {
				continue
			}
			compared++
			t.Run(name+" "+program, func(t *testing.T) {
				bill, err := os.ReadFile(filepath.Join(dist, name+"_"+strings.TrimSuffix(program, ".exe")+".cdx.json"))
				require.NoError(t, err)
				assertBill(t, bill)
				binary, err := exec.Command("tar", "-xzOf", archive, entry).Output()
				require.NoError(t, err)
				assertModules(t, bill, binary)
			})
		}
	}
	assert.Equal(t, released, compared, "released programs")
}

// assertModules checks that a bill of materials has just the modules that Go recorded in a program.
func assertModules(t *testing.T, bill, program []byte) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(program))
	require.NoError(t, err)
	require.NotEmpty(t, info.Deps)
	want := map[string]string{"std " + info.GoVersion: ""}
	for _, module := range info.Deps {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
		require.NoError(t, err)
		want[module.Path+" "+module.Version] = hex.EncodeToString(sum)
	}
	got := map[string]string{}
	for _, c := range parseBill(t, bill).Components {
		assert.Contains(t, c.PURL, "pkg:golang/"+c.Name+"@"+strings.ReplaceAll(c.Version, "+", "%2B"))
		hash := ""
		for _, h := range c.Hashes {
			assert.Equal(t, "SHA-256", h.Alg, c.Name)
			hash = h.Content
		}
		got[c.Name+" "+c.Version] = hash
	}
	assert.Equal(t, want, got)
}

// billOfMaterials has the fields of CycloneDX that the tests look at.
type billOfMaterials struct {
	Metadata struct {
		Timestamp time.Time
		Component component
	}
	Components []component
}

type component struct {
	Name, Version, PURL string
	Hashes              []struct{ Alg, Content string }
}

func parseBill(t *testing.T, text []byte) billOfMaterials {
	t.Helper()
	var bill billOfMaterials
	require.NoError(t, json.Unmarshal(text, &bill))
	return bill
}

// assertBill validates a bill of materials against the schema of CycloneDX, and checks its
// program, its time, and the version of Go.
func assertBill(t *testing.T, text []byte) {
	t.Helper()
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, billSchema(t).Validate(content))

	bill := parseBill(t, text)
	assert.Equal(t, "persia v1.2.3-trial", bill.Metadata.Component.Name+" "+bill.Metadata.Component.Version)
	committed, err := exec.Command("git", "-C", repository, "log", "-1", "--format=%cI").Output()
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(committed)))
	require.NoError(t, err)
	assert.True(t, at.Equal(bill.Metadata.Timestamp), "%s is not the time of the commit, %s", bill.Metadata.Timestamp, at)
	assert.Condition(t, func() bool {
		return slices.ContainsFunc(bill.Components, func(c component) bool { return c.Name == "std" && c.Version == runtime.Version() })
	}, "the release of Go")
}

// billSchema compiles the schema of CycloneDX 1.5, which the generator's library contains.
func billSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	list.Dir = filepath.Join(repository, "scripts", "sbom")
	output, err := list.Output()
	require.NoError(t, err)
	folder := filepath.Join(strings.TrimSpace(string(output)), "schema")
	compiler := jsonschema.NewCompiler()
	for file, id := range map[string]string{
		"bom-1.5.schema.json":   "http://cyclonedx.org/schema/bom-1.5.schema.json",
		"spdx.schema.json":      "http://cyclonedx.org/schema/spdx.schema.json",
		"jsf-0.82.schemax.json": "http://cyclonedx.org/schema/jsf-0.82.schema.json",
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, compiler.AddResource(id, document))
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.5.schema.json")
	require.NoError(t, err)
	return schema
}

// entries returns the names in an archive.
func entries(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	var names []string
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, header.Name)
	}
}
