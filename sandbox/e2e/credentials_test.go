package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// assertNoCredential looks for the credentials in all objects of all kinds but
// Secrets, in the outputs, and in the state.
func (p *pedlStack) assertNoCredential(t *testing.T, result auto.UpResult) {
	t.Helper()
	text, err := json.Marshal(result.Outputs)
	require.NoError(t, err)
	assertHides(t, "the outputs", string(text))
	objects := p.everything(t)
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
func (p *pedlStack) everything(t *testing.T) string {
	t.Helper()
	kinds, err := p.Discovery().ServerPreferredResources()
	require.NoError(t, err)
	config, err := p.s.Cluster().RESTConfig()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	var all strings.Builder
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		require.NoError(t, err)
		for _, kind := range group.APIResources {
			if kind.Kind == "Secret" || !strings.Contains(fmt.Sprint(kind.Verbs), "list") {
				continue
			}
			list, err := client.Resource(version.WithResource(kind.Name)).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, kind.Name)
			text, err := json.Marshal(list)
			require.NoError(t, err)
			all.Write(text)
		}
	}
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
