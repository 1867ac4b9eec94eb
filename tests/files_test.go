package tests

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
)

const root = ".."

func readYAML(t testing.TB, name string, into any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(readText(t, name)), into), name)
}

func readText(t testing.TB, path string) string { return testkit.Read(t, filepath.Join(root, path)) }
