package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

func jobRead(t *testing.T, text string) Job {
	t.Helper()
	var j Job
	p := &input.Problems{}
	input.Decode(p, field.NewPath("persia:jobs").Index(0), input.ParseJSON(text), &j)
	j.resolve()
	return j
}

func TestJobDefaults(t *testing.T) {
	j := jobRead(t, `{"nodePool": "small", "script": {"runtime": "/r"}, "nnWorker": {"nodePool": "gpus", "resources": {"limits": {"nvidia.com/gpu": 8}}}}`)
	assert.Equal(t, "1", j.RunID)
	assert.Equal(t, EngineStatefulSet, j.Engine)
	assert.True(t, j.EnableMetrics)
	assert.Equal(t, 23333, j.Script.Port)
	assert.Equal(t, 8, j.NNWorker.NprocPerNode, "a process for each GPU")
	for _, role := range j.Roles() {
		assert.Equal(t, 1, role.Replicas, role.Name)
		assert.Equal(t, 60, role.TerminationGracePeriodSeconds, role.Name)
	}
	assert.Equal(t, "gpus", j.NNWorker.NodePool)
	assert.Equal(t, "small", j.Dataloader.NodePool)
	assert.False(t, jobRead(t, `{"enableMetrics": false}`).EnableMetrics)
}

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
