package gcp

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDestroyLeavesTheOtherStacksGrant checks that, of two stacks of a project whose jobs mount the
// same bucket, destroy of one removes only its own access.
func TestDestroyLeavesTheOtherStacksGrant(t *testing.T) {
	one := newStack(t, "../..")
	two := &engine{simulated: one.simulated, folder: one.folder, name: "two", state: map[resource.URN]known{}, objects: map[resource.URN]inCluster{}}
	grantsOf := func() []string {
		grants, err := one.cloud.List("iam.member")
		require.NoError(t, err)
		var found []string
		for id := range grants {
			if strings.HasPrefix(id, "b/shared-checkpoints/") {
				found = append(found, id)
			}
		}
		slices.Sort(found)
		return found
	}
	file := func(cluster string, create bool) values {
		file := stackFile(t, "../../Pulumi.dev.yaml")
		source := values{"bucket": "shared-checkpoints"}
		if create {
			source["create"] = values{}
		}
		file["persia:storage"] = []any{values{"name": "checkpoints", "size": "1Ti", "gcsFuse": source}}
		file["persia:jobs"].([]any)[0].(values)["mounts"] = []any{values{"volume": "checkpoints", "mountPath": "/checkpoints"}}
		maps.Copy(file["persia:cluster"].(values), values{"name": cluster, "deletionProtection": false})
		return file
	}
	one.up(configuration(t, file("persia-one", true)))
	ofOne := grantsOf()
	require.Len(t, ofOne, 1)
	two.up(configuration(t, file("persia-two", false)))
	both := grantsOf()
	require.Len(t, both, 2)

	two.destroy()
	assert.Equal(t, ofOne, grantsOf(), "the grant of the stack that stays")
	assert.Empty(t, one.up(configuration(t, file("persia-one", true))))
	assert.Empty(t, one.refresh(), "drift of the stack that stays")
}
