package e2e

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/sandbox/process"
)

// fault is an event during a command.
type fault struct {
	name string
	// do reports whether there was something to hit.
	do func(x *chaosStack, run *command) bool
	// losesAnswers says that a request may be carried out and never answered. The
	// command ends with an error and does not know of resources that it has created.
	losesAnswers bool
}

// The program, the language host and the providers are one process, the sandbox
// command; the engine is the Pulumi CLI.
var faults = []fault{
	{name: "kill program, engine and providers", do: func(_ *chaosStack, run *command) bool {
		return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) == nil
	}},
	{name: "kill program and providers", do: func(_ *chaosStack, run *command) bool {
		return run.Process.Kill() == nil
	}},
	{name: "kill engine", do: func(x *chaosStack, run *command) bool {
		return x.kill(func(p process.Process) bool {
			group, err := syscall.Getpgid(p.PID)
			return err == nil && group == run.Process.Pid && p.PID != run.Process.Pid
		})
	}},
	{name: "restart API server", do: restart("kube-apiserver"), losesAnswers: true},
	{name: "restart etcd", do: restart("etcd"), losesAnswers: true},
	{name: "restart scheduler and controller manager", do: restart("kube-scheduler", "kube-controller-manager")},
	{name: "delete node", do: deleteNode},
}

// restart kills components of the stack's control plane and starts them again, as
// happens to a managed one.
func restart(components ...string) func(*chaosStack, *command) bool {
	return func(x *chaosStack, _ *command) bool {
		all := true
		for _, component := range components {
			killed := x.kill(func(p process.Process) bool {
				path, _, _ := strings.Cut(p.Command, " --")
				return filepath.Base(path) == component && strings.HasPrefix(path, x.dir+"/")
			})
			all = all && killed
		}
		require.NoError(x.t, x.sandbox.Cluster().Start(x.t.Context(), x.t.Output()))
		return all
	}
}

// deleteNode deletes the first node of those that there are, and its pods with it.
func deleteNode(x *chaosStack, _ *command) bool {
	c := newCluster(x.t, x.sandbox)
	nodes := slices.Sorted(maps.Keys(c.nodes()))
	if len(nodes) == 0 {
		return false
	}
	err := c.CoreV1().Nodes().Delete(x.t.Context(), nodes[0], metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(x.t, err)
	return true
}

// kill kills the processes that match, which must be the stack's own, and waits until
// they are gone: one that is still ending counts as one that runs, and is not started
// again. It reports whether there were any.
func (x *chaosStack) kill(match func(process.Process) bool) bool {
	x.t.Helper()
	found, err := process.Matching(match)
	require.NoError(x.t, err)
	for _, p := range found {
		x.t.Logf("kill %d: %.80s", p.PID, p.Command)
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	await(x.t, func() bool { return !slices.ContainsFunc(found, process.Process.Running) },
		"killed processes are still there: %v", found)
	return len(found) > 0
}
