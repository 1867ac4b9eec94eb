package nats

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/config"
)

// TestOperatorScope: over all namespaces the operator has the same rights, but for
// its election, which stays in its own.
func TestOperatorScope(t *testing.T) {
	one := operator("nats-operator", OperatorArgs{Scope: config.ScopeNamespace})
	all := operator("nats-operator", OperatorArgs{Scope: config.ScopeCluster})
	assert.ElementsMatch(t, slices.Concat(one.Role, one.ClusterRole), slices.Concat(all.Role, all.ClusterRole))
	for _, rule := range all.Role {
		assert.NotContains(t, rule.Resources, "pods")
	}
	assert.Empty(t, one.Container.Args)
	assert.Equal(t, []string{"--feature-gates=ClusterScoped=true"}, all.Container.Args)
}
