package e2e

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/sandbox"
)

const password = "correct-horse-battery-staple"

// secure returns a secret in the form of a stack file. The sandbox accepts plain text, and encrypts
// it.
func secure(text string) object { return object{"secure": text} }

// assertNoCredential looks for the credentials in all objects of all kinds but
// Secrets, in the outputs, and in the state.
func (p *pedlStack) assertNoCredential(t *testing.T, result auto.UpResult) {
	t.Helper()
	text, err := json.Marshal(result.Outputs)
	require.NoError(t, err)
	assertHides(t, "the outputs", string(text))
	objects := everything(t, p.s)
	assert.Contains(t, objects, "pedl-master")
	assertHides(t, "an object", objects)
	files := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(p.dir, "madeup", "state"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "pedl-master-config") {
			files++
		}
		assertHides(t, path, string(text))
		return err
	}))
	assert.Positive(t, files, "a state with PEDL")
}

// everything returns all objects but Secrets, as JSON.
func everything(t *testing.T, s *sandbox.Sandbox) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, eachObject(t.Context(), s, func(item unstructured.Unstructured) {
		if item.GetKind() != "Secret" {
			require.NoError(t, json.NewEncoder(&all).Encode(item.Object))
		}
	}))
	return all.String()
}

// assertHides checks that a text has no credential, neither as it is nor in
// base64, wherever it begins there. All credentials end alike.
func assertHides(t *testing.T, what, text string) {
	t.Helper()
	assert.False(t, strings.Contains(text, password), "%s has a credential", what)
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + password))
		assert.False(t, strings.Contains(text, encoded[4:len(encoded)-4]), "%s has a credential in base64", what)
	}
}
