package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReservedNames checks that a stack never shares its folder with other files, which Down would remove.
func TestReservedNames(t *testing.T) {
	for name, refused := range map[string]bool{"storage": true, "bin": true, "images": true, "e2e": true, "dev": false, "storages": false} {
		t.Run(name, func(t *testing.T) {
			project := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(project, "Pulumi."+name+".yaml"), nil, 0o600))
			_, err := New(Options{Project: project, Stack: name, Dir: t.TempDir()})
			if refused {
				assert.ErrorContains(t, err, "rename the stack")
			} else {
				assert.NoError(t, err)
			}
		})
	}
}
