package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/sandbox/stackgen"
	"persia/sandbox/toolchain"
)

// BenchmarkAlternatives compares `up` with what users would do instead: kubectl, Helm and
// Terraform bring up the same Kubernetes objects, one tool after the other, on the same
// control plane with the same nodes. It prints a table for docs/contribute/performance.md. Each tool runs
// once: -benchtime must be 1x.
func BenchmarkAlternatives(b *testing.B) {
	_, err := toolchain.BuildAlternatives(b.Context(),
		filepath.Join(repository, "sandbox", "toolchain"), binDir(), b.Output())
	require.NoError(b, err)
	var rows []comparison
	b.Run("prod", func(b *testing.B) { rows = append(rows, compare(b, "prod", repository, "prod")) })
	for _, count := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("jobs=%d", count), func(b *testing.B) {
			project := b.TempDir()
			writeJobs(b, project, count)
			rows = append(rows, compare(b, fmt.Sprintf("jobs=%d", count), project, "madeup"))
		})
	}
	printTables(table(rows), figureTable(againstKubectl(rows)))
}

// comparison has the cost of each tool for one stack, in the order of the tools.
type comparison struct {
	stack   string
	objects int
	took    []cost
}

// cost is the time that a tool took until all was ready. It is zero for a tool that failed.
type cost struct{ wall, cpu time.Duration }

// compare measures a stack. The first up makes the cluster and its nodes too, and is not
// measured.
func compare(b *testing.B, name, project, stack string) comparison {
	s := newSandboxOf(b, project, b.TempDir(), stack)
	require.NoError(b, s.Apply(b.Context()))
	w := newWorkbench(b, s, kubernetesObjects(b, project, stack))
	result := comparison{stack: name, objects: len(w.objects)}

	w.remove(b)
	_, err := s.Refresh(b.Context())
	require.NoError(b, err)
	result.took = append(result.took, measureTool(b, "up", func(b *testing.B) {
		require.NoError(b, s.Apply(b.Context()))
	}, func(*testing.B) {}))
	require.False(b, b.Failed(), "the others are compared with up")
	for _, tool := range alternatives {
		w.remove(b)
		// The files are written before the clock starts.
		apply := tool.prepare(b, w)
		result.took = append(result.took, measureTool(b, tool.name, apply, w.await))
	}
	w.remove(b)
	return result
}

// kubernetesObjects returns the objects that the program registers for a stack. Some of their names
// contain a hash of the stack's name, which differs here.
func kubernetesObjects(b testing.TB, project, stack string) []*unstructured.Unstructured {
	b.Helper()
	file := "Pulumi." + stack + ".yaml"
	stacks, err := stackgen.ReadStacks(os.DirFS(project), file)
	require.NoError(b, err)
	objects, err := stackgen.Objects(stacks[file], project)
	require.NoError(b, err)
	require.NotEmpty(b, objects)
	return objects
}

// measureTool has a tool bring up all objects, and waits until they are ready. It counts the processor
// time of the tool and, for `up`, of the engine, the program and the providers, but not of the control
// plane or of the wait.
func measureTool(b *testing.B, name string, apply, wait func(*testing.B)) (took cost) {
	b.Run(name, func(b *testing.B) {
		started, used := time.Now(), processorTime(b)
		apply(b)
		cpu := processorTime(b) - used
		wait(b)
		took = cost{time.Since(started), cpu}
		b.ReportMetric(took.wall.Seconds(), "ready-s")
		b.ReportMetric(took.cpu.Seconds(), "cpu-s")
		b.ReportMetric(0, "ns/op")
	})
	return took
}

// processorTime returns the processor time of this process and its children.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		require.NoError(b, syscall.Getrusage(who, &usage))
		used += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return used
}

// table returns Markdown: seconds until all was ready, their ratio to the seconds of `up`, and seconds
// of processor time.
func table(rows []comparison) string {
	var text strings.Builder
	text.WriteString("| stack | objects | `up` |")
	rule := "| --- | --- | --- |"
	for _, tool := range alternatives {
		fmt.Fprintf(&text, " %s |", tool.title)
		rule += " --- |"
	}
	fmt.Fprintln(&text, "\n"+rule)
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s | %d |", row.stack, row.objects)
		for _, took := range row.took {
			fmt.Fprintf(&text, " %s |", took.text(row.took[0]))
		}
		fmt.Fprintln(&text)
	}
	return text.String()
}

func (c cost) text(up cost) string {
	if c.wall == 0 {
		return "failed"
	}
	return fmt.Sprintf("%.1f s (%.2f), %.1f s CPU", c.wall.Seconds(), c.wall.Seconds()/up.wall.Seconds(), c.cpu.Seconds())
}
