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

	"persia/config"
)

const (
	source = "../../config"
	docs   = "../../docs/reference"
)

// pages returns the pages from the current source.
func pages(t *testing.T) map[string]string {
	sections, err := Sections(source)
	require.NoError(t, err)
	return Pages(sections)
}

func TestPagesAreCurrent(t *testing.T) {
	for name, got := range pages(t) {
		want, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), got, "%s: write it with go run ./internal/reference/cmd", name)
	}
}

// TestPagesAreWhole checks that the pages have all keys, and all fields of all types in a stack.
func TestPagesAreWhole(t *testing.T) {
	chapters := map[string]string{}
	for _, page := range pages(t) {
		for _, chapter := range regexp.MustCompile(`(?m)^##+ `).Split(page, -1) {
			title, text, _ := strings.Cut(chapter, "\n")
			chapters[title] = text
		}
	}
	seen := map[reflect.Type]bool{}
	var look func(path string, typ reflect.Type)
	look = func(path string, typ reflect.Type) {
		object, inside := unwrap(typ)
		if !isObject(object) || !isOwn(object) || seen[object] {
			return
		}
		seen[object] = true
		assert.Contains(t, chapters, path)
		for _, f := range reflect.VisibleFields(object) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || !f.IsExported() {
				continue
			}
			assert.Contains(t, chapters[path], "\n| `"+name+"` |", "%s.%s", object, f.Name)
			look(path+inside+"."+name, f.Type)
		}
	}
	for _, key := range config.Keys() {
		assert.Contains(t, chapters, key)
		f, ok := config.StackField(key)
		require.True(t, ok, key)
		look(key, f.Type)
	}
	assert.Greater(t, len(seen), 20)
}

func TestLinksLeadSomewhere(t *testing.T) {
	anchors := map[string]bool{}
	for name, page := range pages(t) {
		for _, heading := range regexp.MustCompile(`(?m)^##+ (.*)$`).FindAllStringSubmatch(page, -1) {
			to := name + anchor(heading[1])
			assert.False(t, anchors[to], "two headings have the anchor %s", to)
			anchors[to] = true
		}
	}
	for name, page := range pages(t) {
		for _, target := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(page, -1) {
			file, section, inside := strings.Cut(target[1], "#")
			if file == "" {
				file = name
			}
			switch {
			case strings.HasPrefix(file, "https://kubernetes.io/"):
			case inside:
				assert.True(t, anchors[file+"#"+section], "%s: %s", name, target[1])
			default:
				assert.FileExists(t, filepath.Join(docs, file))
			}
		}
	}
}

func TestNotesHaveSections(t *testing.T) {
	sections, err := Sections(source)
	require.NoError(t, err)
	paths := map[string]bool{}
	for _, s := range sections {
		paths[s.Path] = true
	}
	for path := range notes {
		assert.True(t, paths[path], path)
	}
}

// TestUndescribed checks the error for a package without comments.
func TestUndescribed(t *testing.T) {
	dir := t.TempDir()
	_, err := Sections(dir)
	assert.ErrorContains(t, err, "no types in "+dir)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "stack.go"), []byte("package config\n\ntype Stack struct{}\n"), 0o644))
	_, err = Sections(dir)
	assert.ErrorContains(t, err, "persia:nodePools: nothing describes it")
	assert.ErrorContains(t, err, "config.Pool.MachineType: neither the field nor its type has a doc comment")
	assert.ErrorContains(t, err, "Role.Replicas: neither")
}

func TestUnknownTypes(t *testing.T) {
	w := &walker{comments: &comments{}, objects: map[reflect.Type]*Section{}}
	w.typeOf("persia:a", reflect.TypeFor[chan int]())
	require.Len(t, w.problems, 1)
	assert.ErrorContains(t, w.problems[0], "persia:a: package reference has no word for a value of type chan int")

	field := structField{owner: reflect.TypeFor[config.Stack](), name: "b"}
	field.Type = reflect.TypeFor[reflect.ChanDir]()
	w = &walker{comments: &comments{fields: map[string]string{nameOf(field.owner) + ".": "It."}}}
	w.field("persia:a", field)
	require.Len(t, w.problems, 1)
	assert.ErrorContains(t, w.problems[0], "persia:a.b: package reference does not know where reflect.ChanDir is described")
}
