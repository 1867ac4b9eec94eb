package capacity

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/gcp"
)

// recordedNode is a GKE node as a user published it: its allocatable resources and, in most cases, its capacity.
type recordedNode struct {
	MachineType    string
	Source         string
	ThreadsPerCore int
	CPU, Memory    string
	Allocatable    struct{ CPU, Memory string }
	// HopefulMiB is by how much the formula exceeds the node. Its kernel keeps more than
	// the kernels that the autoscaler's authors have measured.
	HopefulMiB float64
}

// machine returns the machine that the node runs on.
func (n recordedNode) machine(t *testing.T) gcp.Machine {
	t.Helper()
	m, ok := gcp.Lookup(n.MachineType)
	require.True(t, ok, "not in the catalogue")
	if n.ThreadsPerCore == 1 {
		m.CPUs /= 2
	}
	return m
}

// rounding returns the last digit of a quantity, in MiB.
func rounding(text string) float64 {
	number, gi := strings.CutSuffix(text, "Gi")
	if _, decimals, rounded := strings.Cut(number, "."); gi && rounded {
		return 1024 * math.Pow10(-len(decimals))
	}
	return 0
}

// TestRecordedNodes compares the formula with nodes of GKE from 1.25 to 1.36.
func TestRecordedNodes(t *testing.T) {
	var recorded struct {
		Sources map[string]string
		Nodes   []recordedNode
	}
	text, err := os.ReadFile(filepath.Join("testdata", "nodes.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &recorded))
	types := map[string]bool{}
	for _, n := range recorded.Nodes {
		types[n.MachineType] = true
		t.Run(n.MachineType, func(t *testing.T) {
			require.Contains(t, recorded.Sources, n.Source)
			m := n.machine(t)
			cpu, memory := resource.MustParse(n.Allocatable.CPU), resource.MustParse(n.Allocatable.Memory)
			formula := Allocatable(m)
			assert.Equal(t, cpu.MilliValue(), formula.MilliCPU)

			// What the kubelet reserves has no tolerance but the digits of the record.
			if n.Memory != "" {
				capacity := resource.MustParse(n.Memory)
				assert.Equal(t, strconv.Itoa(int(m.CPUs)), n.CPU)
				assert.InDelta(t, float64(reservedMemory(m.MemoryBytes)+evictionThreshold)/MiB, float64(capacity.Value()-memory.Value())/MiB,
					rounding(n.Memory)+rounding(n.Allocatable.Memory), "reserved MiB")
			}

			// The kernel keeps some or all of the remainder that the formula counts for it,
			// and 4 MiB less where it is Container-Optimized OS.
			remainder := min(0.00175*float64(m.MemoryBytes)/MiB, 248) + 4
			excess := float64(formula.MemoryBytes-memory.Value()) / MiB
			assert.LessOrEqual(t, excess, n.HopefulMiB, "more MiB than the node has")
			assert.GreaterOrEqual(t, excess, -remainder, "fewer MiB than the node has")
			if n.HopefulMiB > 0 {
				assert.Greater(t, excess, n.HopefulMiB-2, "the tolerance is too wide")
			}
		})
	}
	assert.GreaterOrEqual(t, len(types), 12, "types of machines")
}
