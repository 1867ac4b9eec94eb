package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

func jobRead(t *testing.T, text string) Job {
	t.Helper()
	var j Job
	p := &input.Problems{}
	input.Decode(p, field.NewPath("persia:jobs").Index(0), input.ParseJSON(text), &j)
	require.NoError(t, p.Err())
	j.Resolve()
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

// TestDerivedNames checks that the Services of two jobs have different names.
func TestDerivedNames(t *testing.T) {
	unset := Job{}
	for _, a := range unset.derivedNames() {
		for _, b := range unset.derivedNames() {
			assert.True(t, a == b || !strings.HasSuffix(a.suffix, b.suffix), "%s ends with %s", a.suffix, b.suffix)
		}
	}
}

func TestDefaultImageComputesOn(t *testing.T) {
	for gpu, newer := range map[string]bool{
		"nvidia-h100-mega-80gb": true, "nvidia-h200-141gb": true, "nvidia-b200": true, "nvidia-gb200": true, "nvidia-rtx-pro-6000": true,
		"nvidia-tesla-a100": false, "nvidia-a100-80gb": false, "nvidia-l4": false, "nvidia-tesla-t4": false, "nvidia-tesla-v100": false,
	} {
		assert.Equal(t, !newer, DefaultImageComputesOn(gpu), gpu)
	}
}

// TestSameObjects checks that no two jobs of a stack have objects of the same name.
func TestSameObjects(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		engine        Engine
		refused       bool
	}{
		"completion":                 {"train", "train-completion", EngineOperator, true},
		"role":                       {"train", "train-nn-worker", EngineOperator, true},
		"listed before":              {"train-completion", "train", EngineOperator, true},
		"begins alike":               {"train", "train-2", EngineOperator, false},
		"no object of its own name":  {"train", "train-completion", EngineStatefulSet, false},
		"a role without an operator": {"train", "train-nn-worker", EngineStatefulSet, false},
		"the Service of a JobSet":    {"train", "train-nn-worker", EngineJobSet, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &input.Problems{}
			checkJobList(p, []Job{{Name: test.first, Engine: test.engine}, {Name: test.second, Engine: test.engine}}, &Stack{})
			assert.Equal(t, test.refused, strings.Contains(p.Err().Error(), "is also the name of objects of"), "%v", p.Err())
		})
	}
}

// TestNameOfJobSet checks the limit of names: the pods of a JobSet have longer ones than the pods of
// a StatefulSet.
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
				p := &input.Problems{}
				checkDerivedNames(p, field.NewPath("name"), &j)
				assert.Equal(t, refused, p.Err() != nil, "%d characters: %v", length, p.Err())
			}
		})
	}
}
