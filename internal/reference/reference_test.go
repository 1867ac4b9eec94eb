package reference

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
)

const root = "../.."

// filesOf returns the generated files, from the source in a folder.
func filesOf(t *testing.T, folder string) (map[string]string, error) {
	t.Helper()
	t.Chdir(folder)
	r, err := Read()
	if err != nil {
		return nil, err
	}
	return r.Files()
}

func TestFilesAreCurrent(t *testing.T) {
	files, err := filesOf(t, root)
	require.NoError(t, err)
	for name, text := range files {
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.True(t, string(want) == text, "%s is not what package config says: go run ./internal/reference/cmd writes it", name)
	}
}

// TestEveryKeyIsDescribed checks that the pages have all keys, and all fields of all types in a stack, and
// that Pulumi.yaml has the keys.
func TestEveryKeyIsDescribed(t *testing.T) {
	files, err := filesOf(t, root)
	require.NoError(t, err)
	chapters := map[string]string{}
	for name, page := range files {
		if filepath.Ext(name) != ".md" {
			continue
		}
		for _, chapter := range regexp.MustCompile(`(?m)^##+ `).Split(page, -1) {
			title, text, _ := strings.Cut(chapter, "\n")
			chapters[title] = text
		}
	}
	seen := map[reflect.Type]bool{}
	var look func(path string, typ reflect.Type)
	look = func(path string, typ reflect.Type) {
		switch {
		case typ.Kind() == reflect.Pointer:
			look(path, typ.Elem())
		case typ.Kind() == reflect.Slice:
			look(path+"[]", typ.Elem())
		case typ.Kind() == reflect.Map:
			look(path+"[NAME]", typ.Elem())
		case typ.Kind() != reflect.Struct || !isOwn(typ) || readsItself(typ) != nil || seen[typ]:
		default:
			seen[typ] = true
			title := regexp.MustCompile(`(\[\w*\])+$`).ReplaceAllString(path, "")
			assert.Contains(t, chapters, title)
			for _, f := range reflect.VisibleFields(typ) {
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
					assert.Contains(t, chapters[title], "\n| `"+name+"` |", "%s.%s", typ, f.Name)
					look(path+"."+name, f.Type)
				}
			}
		}
	}
	text, err := os.ReadFile("Pulumi.yaml")
	require.NoError(t, err)
	var project struct{ Config map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &project))
	for _, key := range config.Keys() {
		assert.Contains(t, chapters, key)
		assert.Contains(t, project.Config, key, "Pulumi.yaml")
		f, ok := config.StackField(key)
		require.True(t, ok, key)
		look(key, f.Type)
	}
	assert.Greater(t, len(seen), 20)
}

func TestUndescribed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "config"), 0o755))
	_, err := filesOf(t, dir)
	assert.ErrorContains(t, err, "config.Pool.MachineType: neither the field nor its type has a doc comment")
	assert.ErrorContains(t, err, "Role.Replicas: neither")
}

func TestTags(t *testing.T) {
	type object struct {
		Bounded int `json:"bounded,omitempty" default:"3" min:"2" max:"9"`
	}
	f := fieldsOf(reflect.TypeFor[object]())[0]
	value := &schema{Type: "integer", Description: "It."}
	readTags(value, f)
	assert.Equal(t, "2 9", value.Minimum.String()+" "+value.Maximum.String())
	assert.Equal(t, "It. Default 3.", value.Description)
}

func TestInYAML(t *testing.T) {
	type object struct {
		Nodes, GPU  int
		MaxSurge    int `json:"maxSurge"`
		Autoscaling int `json:"autoscaling"`
	}
	r := &Reference{shared: map[string]string{"GCSFuse": "gcsFuse"}}
	for text, want := range map[string]string{
		"Default 1 where MaxSurge is 0.":     "Default 1 where `maxSurge` is 0.",
		"MaxSurge's default.":                "`maxSurge`'s default.",
		"GCSFuse or a disk.":                 "`gcsFuse` or a disk.",
		"Either it or Autoscaling is given.": "Either it or `autoscaling` is given.",
		"Default: Nodes of the Autoscaling.": "Default: Nodes of the Autoscaling.",
		"It has Autoscaling and MaxSurge":    "It has `autoscaling` and `maxSurge`",
		"Autoscaling, which is off.":         "Autoscaling, which is off.",
		"Run `MaxSurge` as UNMaxSurge_1.":    "Run `MaxSurge` as UNMaxSurge_1.",
	} {
		assert.Equal(t, want, r.inYAML(text, reflect.TypeFor[object]()))
	}
}
