package score

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"persia/sandbox/stackgen"
)

const repository = "../.."

// finding is a check that is critical for all objects of a kind, according to kube-score.
type finding struct{ kind, check string }

// TestCriticalIsExplained checks that testdata/reasons.md has a reason for each object of dev,
// prod and the examples that kube-score grades critical, and no other reasons.
func TestCriticalIsExplained(t *testing.T) {
	reasons, found, program := explained(t), map[finding]map[string]bool{}, build(t)
	files := os.DirFS(repository)
	objects := 0
	for _, pattern := range []string{"Pulumi.*.yaml", "examples/Pulumi.*.yaml"} {
		stacks, err := stackgen.ReadStacks(files, pattern)
		require.NoError(t, err)
		require.NotEmpty(t, stacks)
		for path, stack := range stacks {
			planned, err := stackgen.Objects(stack, filepath.Join(repository, filepath.Dir(path)))
			require.NoError(t, err, path)
			objects += len(planned)
			for _, scored := range scoreOf(t, program, planned) {
				for _, check := range scored.Checks {
					if check.Skipped || check.Grade > critical {
						continue
					}
					one := finding{scored.TypeMeta.Kind, check.Check.ID}
					if found[one] == nil {
						found[one] = map[string]bool{}
					}
					found[one][fmt.Sprintf("%s in %s: %v", scored.ObjectMeta.Name, path, check.Comments)] = true
				}
			}
		}
	}
	t.Logf("%d objects", objects)
	for one, where := range found {
		assert.Contains(t, reasons, one, "explain it in testdata/reasons.md, or mend it:\n%q", slices.Sorted(maps.Keys(where)))
	}
	for one := range reasons {
		assert.Contains(t, found, one, "testdata/reasons.md explains what kube-score does not find")
	}
}

// scored is kube-score's result for an object.
type scored struct {
	TypeMeta struct {
		Kind string `json:"kind"`
	} `json:"type_meta"`
	ObjectMeta struct {
		Name string `json:"name"`
	} `json:"object_meta"`
	Checks []struct {
		Check struct {
			ID string `json:"id"`
		} `json:"check"`
		Grade    int   `json:"grade"`
		Skipped  bool  `json:"skipped"`
		Comments []any `json:"comments"`
	} `json:"checks"`
}

// critical is kube-score's lowest grade.
const critical = 1

// build compiles kube-score, which does not compile with the versions of Kubernetes'
// packages that the sandbox has.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kube-score")
	output, err := exec.Command("go", "build", "-C", filepath.Join("..", "toolchain", "kube-score"), "-o", program, "github.com/zegl/kube-score/cmd/kube-score").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return program
}

func scoreOf(t *testing.T, program string, objects []*unstructured.Unstructured) []scored {
	t.Helper()
	var text bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		text.WriteString("---\n")
		text.Write(document)
	}
	command := exec.Command(program, "score", "--output-format", "json", "--kubernetes-version", "v1.34", "-")
	command.Stdin = &text
	output, err := command.Output()
	var findings *exec.ExitError // it has found something
	require.True(t, err == nil || errors.As(err, &findings) && len(output) > 0, "%v", err)
	var all []scored
	require.NoError(t, json.Unmarshal(output, &all), "%s", output)
	require.NotEmpty(t, all)
	return all
}

var explanation = regexp.MustCompile("(?m)^\\| ([A-Z][A-Za-z]+) \\| `([a-z-]+)` \\| .{20,} \\|$")

// explained returns the findings for which testdata/reasons.md has a reason.
func explained(t *testing.T) map[finding]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("testdata", "reasons.md"))
	require.NoError(t, err)
	reasons := map[finding]bool{}
	for _, row := range explanation.FindAllStringSubmatch(string(page), -1) {
		reasons[finding{row[1], row[2]}] = true
	}
	return reasons
}
