package toolchain

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"persia/internal/testkit"
)

// apart are the modules whose programs no version can share: the NATS operator is written for a Kubernetes of 2021, the
// Pushgateway panics at each push with a newer version of Prometheus' parser, few tests compile gcsfuse, which needs
// newer libraries of Google, the NATS server shares only small packages, Pulumi's Kubernetes provider judges ours as it
// was released, and the next minor version of Kubernetes has newer libraries.
var apart = []string{"nats-operator", "pushgateway", "gcsfuse", "nats-server", "kubernetes-provider", "kubernetes-next"}

// twice are the modules that programs need in two versions: kwok needs newer versions than
// the kubelet, actionlint an older one than Pulumi, and the sandbox an older one of what asks terminals for
// their color, and a newer one of pprof, which it does not compile. All are small, and few packages import them.
var twice = []string{
	"k8s.io/cri-api", "k8s.io/cri-client",
	"github.com/Azure/go-ansiterm", "github.com/cyphar/filepath-securejoin", "github.com/moby/term",
	"go.yaml.in/yaml/v4", "github.com/google/pprof", "github.com/charmbracelet/bubbles", "github.com/charmbracelet/bubbletea",
}

// TestSharedModulesHaveOneVersion: the compiler sees a package once, however many of the
// programs hold it. A second version of Kubernetes' client or of gRPC takes minutes.
func TestSharedModulesHaveOneVersion(t *testing.T) {
	files := testkit.Must(filepath.Glob("*/go.mod"))(t)
	require.NotEmpty(t, files)
	files = append(files, "../go.mod", "../../go.mod")

	type use struct{ version, file string }
	first := map[string]use{}
	for _, file := range files {
		if slices.Contains(apart, filepath.Dir(file)) {
			continue
		}
		for module, version := range versions(t, file) {
			if slices.Contains(twice, module) {
				continue
			}
			if seen, ok := first[module]; ok {
				assert.Equal(t, seen.version, version, "%s in %s, and before it in %s: run go get %s@VERSION where it is older", module, seen.file, file, module)
				continue
			}
			first[module] = use{version, file}
		}
	}
	t.Logf("%d modules", len(first))
}

// TestDocumentedVersions: README.md names the versions that the tests run.
func TestDocumentedVersions(t *testing.T) {
	_, table, found := strings.Cut(testkit.Read(t, "../../README.md"), "## Tested versions")
	require.True(t, found)
	for module, file := range map[string]string{
		"k8s.io/kubernetes": "kubernetes", "github.com/nats-io/nats-server/v2": "nats-server", "github.com/nats-io/nats-operator": "nats-operator",
		"sigs.k8s.io/jobset": "jobset", "sigs.k8s.io/kueue": "kueue", "github.com/googlecloudplatform/gcsfuse/v3": "gcsfuse", "github.com/pulumi/pulumi/pkg/v3": "pulumi",
	} {
		version := versions(t, file+"/go.mod")[module]
		require.NotEmpty(t, version, module)
		assert.Regexp(t, `[| ]`+regexp.QuoteMeta(strings.TrimPrefix(version, "v"))+`[ ,]`, table, module)
	}
}

// versions returns the compiled version of each module that a go.mod file requires.
func versions(t *testing.T, file string) map[string]string {
	t.Helper()
	text := testkit.Must(os.ReadFile(file))(t)
	parsed := testkit.Must(modfile.Parse(file, text, nil))(t)
	found := map[string]string{}
	for _, r := range parsed.Require {
		found[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range parsed.Replace {
		if _, ok := found[r.Old.Path]; ok && r.New.Version != "" {
			found[r.Old.Path] = r.New.Version
		}
	}
	// A module's own version says nothing: it is there to be replaced.
	delete(found, "persia")
	return found
}
