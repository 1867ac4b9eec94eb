package tests

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestURNs keeps the names of all resources: a changed one is a resource
// replaced, in every stack that there is.
func TestURNs(t *testing.T) {
	for _, name := range []string{"dev", "prod"} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(deployStack(t, name).urns(), "\n") + "\n"
			golden := filepath.Join("testdata", name+".urns")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got, "go test ./tests -update writes it anew")
		})
	}
}
