package preflight

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServicesAreDocumented checks that the page names every API and its purpose.
func TestServicesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/start/google-cloud.md")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") && strings.Contains(line, ".googleapis.com` |") {
			rows++
		}
	}
	for _, service := range allServices() {
		assert.Contains(t, string(page), "| `"+service.Name+"` | "+service.For+" |\n")
	}
	assert.Equal(t, len(allServices()), rows)
}
