package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

// TestKinds checks that no two roles share a field, a name, a command or a priority.
func TestKinds(t *testing.T) {
	j, seen := &Job{}, map[any]string{}
	for _, role := range j.Roles() {
		for _, own := range []any{"field " + role.Field, "name " + role.Name, "command " + role.Command, "older " + role.Older, role.Priority, role.Role} {
			assert.Empty(t, seen[own], "%v", own)
			seen[own] = role.Name
		}
		assert.NotEmpty(t, role.DefaultImage)
		assert.Equal(t, role.Server, role.Port != 0 && role.Port != MasterPort)
	}
}

// TestNameOfJobSet checks the limit of names: the pods of a JobSet have longer ones than the pods of a StatefulSet.
func TestNameOfJobSet(t *testing.T) {
	for name, test := range map[string]struct {
		engine   Engine
		replicas int
		longest  int
	}{
		"StatefulSets":        {EngineStatefulSet, 1000, 35},
		"JobSet":              {EngineJobSet, 10, 36},
		"JobSet of many pods": {EngineJobSet, 1000, 34},
	} {
		t.Run(name, func(t *testing.T) {
			for length, refused := range map[int]bool{test.longest: false, test.longest + 1: true} {
				j := Job{Name: strings.Repeat("a", length), Engine: test.engine}
				for _, role := range j.Roles() {
					role.Replicas = test.replicas
				}
				c := jobChecker{&input.Problems{}, nil}
				c.checkName(field.NewPath("name"), &j)
				assert.Equal(t, refused, c.Err() != nil, "%d characters: %v", length, c.Err())
			}
		})
	}
}
