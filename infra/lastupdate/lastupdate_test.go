package lastupdate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// checkedSDK is the version of the Pulumi SDK whose engine was seen to answer the two calls.
const checkedSDK = "v3.250.0"

func TestSDKWasChecked(t *testing.T) {
	path := filepath.Join("..", "..", "go.mod")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := modfile.Parse(path, text, nil)
	require.NoError(t, err)
	for _, required := range file.Require {
		if required.Mod.Path == "github.com/pulumi/pulumi/sdk/v3" {
			assert.Equal(t, checkedSDK, required.Mod.Version,
				"readStackOutputs and readStackResourceOutputs are not documented: run TestStorage in sandbox/e2e with the new version, and then write it into checkedSDK")
			return
		}
	}
	t.Error("go.mod does not require the Pulumi SDK")
}
