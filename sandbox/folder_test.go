package sandbox

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestReservedNames checks that a stack never shares its folder with other files, which Down would remove.
func TestReservedNames(t *testing.T) {
	for name, refused := range map[string]bool{"storage": true, "bin": true, "images": true, "e2e": true, "dev": false, "storages": false} {
		project := t.TempDir()
		write(t, filepath.Join(project, "Pulumi."+name+".yaml"), "")
		_, err := New(Options{Project: project, Stack: name, Dir: t.TempDir()})
		if refused {
			assert.ErrorContains(t, err, "rename the stack", name)
		} else {
			assert.NoError(t, err, name)
		}
	}
}
