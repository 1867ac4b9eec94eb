package reference

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/testkit"
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
	for name, text := range testkit.Must(filesOf(t, root))(t) {
		assert.True(t, testkit.ReadGolden(t, filepath.Join("..", name), text) == text, "%s is not what package config says: go test ./internal/reference -update writes it", name)
	}
}

// TestEveryKeyIsDescribed: the page has each key, and a row for each field that editors know.
func TestEveryKeyIsDescribed(t *testing.T) {
	t.Chdir(root)
	r := testkit.Must(Read())(t)
	page := r.page()
	for _, key := range config.Keys() {
		assert.Contains(t, page, "\n## "+key+"\n")
	}
	for name, object := range r.definitions {
		for field := range object.Properties.KeysFromOldest() {
			if isOwn(r.types[name]) && name != "Stack" {
				assert.Contains(t, page, "\n| `"+field+"` |", name)
			}
		}
	}
}

func TestUndescribed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "config"), 0o755))
	_, err := filesOf(t, dir)
	assert.ErrorContains(t, err, "config.Pool.MachineType: neither the field nor its type has a doc comment")
	assert.ErrorContains(t, err, "Role.Replicas: neither")
}
