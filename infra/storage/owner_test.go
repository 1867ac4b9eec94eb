package storage

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestOwners: no two stacks have one label, whatever a label leaves out of their names.
func TestOwners(t *testing.T) {
	labels := map[string]string{}
	for _, stack := range []struct{ organization, project, stack string }{
		{"acme", "persia", "prod"}, {"other", "persia", "prod"}, {"acme", "persia", "Prod"},
		{"acme", "persia", "a.b"}, {"acme", "persia", "a-b"}, {"acme", "persia-a", "b"}, {"acme", "persia", "a_b"},
		{"acme", "persia", strings.Repeat("a", 90)}, {"acme", "persia", strings.Repeat("a", 91)},
	} {
		ctx, err := pulumi.NewContext(t.Context(), pulumi.RunInfo{Organization: stack.organization, Project: stack.project, Stack: stack.stack, Mocks: nothing{}})
		require.NoError(t, err)
		label, name := ownerOf(ctx), stack.organization+"/"+stack.project+"/"+stack.stack
		assert.Empty(t, labels[label], "%s has the label of %s, %s", name, labels[label], label)
		assert.LessOrEqual(t, len(label), validation.LabelValueMaxLength, label)
		assert.Regexp(t, `^[a-z0-9_-]+$`, label)
		labels[label] = name
	}
}

type nothing struct{ pulumi.MockResourceMonitor }
