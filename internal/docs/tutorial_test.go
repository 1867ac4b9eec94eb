package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const tutorial = "docs/start/your-own-model.md"

// TestTutorialQuotesCode: the functions in the tutorial are the example's.
func TestTutorialQuotesCode(t *testing.T) {
	page := string(readPage(t, filepath.FromSlash(tutorial)).source)
	source := readExample(t, "checkpoint.py")
	for _, function := range []string{"load", "save"} {
		_, text, found := strings.Cut(source, "\ndef "+function+"(")
		require.True(t, found, function)
		text, _, _ = strings.Cut(text, "\n\n\n")
		want := strings.ReplaceAll("def "+function+"("+text, "\n", "\n    ")
		assert.Contains(t, page, "    "+want+"\n", "%s: quote %s of examples/shop/checkpoint.py", tutorial, function)
	}
}

// TestTutorialHasFields: the tutorial explains each field of PERSIA's two configuration files.
func TestTutorialHasFields(t *testing.T) {
	page := string(readPage(t, filepath.FromSlash(tutorial)).source)
	for _, name := range []string{"embedding_config.yml", "global_config.yml"} {
		var configuration map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(readExample(t, name)), &configuration))
		for _, field := range fieldsBelow(configuration) {
			assert.Contains(t, page, "`"+field+"`", "%s does not explain a field of %s", tutorial, name)
		}
	}
}

// fieldsBelow are the names of all fields. The names below slots_config are features.
func fieldsBelow(in map[string]any) []string {
	var names []string
	for name, value := range in {
		names = append(names, name)
		below, _ := value.(map[string]any)
		if name != "slots_config" {
			names = append(names, fieldsBelow(below)...)
			continue
		}
		for _, feature := range below {
			names = append(names, fieldsBelow(feature.(map[string]any))...)
		}
	}
	return names
}

func readExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples", "shop", name))
	require.NoError(t, err)
	return string(text)
}
