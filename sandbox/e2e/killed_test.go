package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"persia/sandbox"
	"persia/sandbox/process"
)

// TestKilled kills `make up` while it works: up goes on from there, and down deletes whatever
// exists. Then it interrupts up. The short form does one of them at each moment, the long form both.
func TestKilled(t *testing.T) {
	t.Parallel()
	starts := moment{printed: regexp.MustCompile("control plane: starting"), then: etcdRuns}
	podsStart := moment{printed: regexp.MustCompile("PodDisruptionBudget .* creating")}
	cases := []struct {
		name string
		at   moment
		then func(t *testing.T, s *sandbox.Sandbox, dir string)
	}{
		{"down after a kill while the control plane starts", starts, downAfterKill},
		{"up again after a kill while pods start", podsStart, upAfterKill},
		{"up again after a kill while the control plane starts", starts, upAfterKill},
		{"down after a kill while pods start", podsStart, downAfterKill},
	}
	for _, test := range cases[:forms(2, len(cases))] {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newSandbox(t, dir, "dev")
			killUp(t, s, dir, test.at)
			test.then(t, s, dir)
		})
	}
}

func upAfterKill(t *testing.T, s *sandbox.Sandbox, dir string) {
	t.Helper()
	err := s.Apply(t.Context())
	require.NoError(t, err)
	c := newCluster(t, s)
	c.assertOn("gpu", 4, c.rolePods("adult-income"))
	assert.Empty(t, upChanges(t, s))
	require.NoError(t, s.Destroy(t.Context()))
	c.assertEmpty()
	upAfterInterrupt(t, dir)
}

func downAfterKill(t *testing.T, s *sandbox.Sandbox, dir string) {
	t.Helper()
	require.NoError(t, s.Down(t.Context()))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries, "down leaves no file")
	assertNoProcess(t, dir)
}

// upAfterInterrupt presses Ctrl-C while pods start: up ends by itself and writes the state, so
// that the next up has nothing to find out. Ctrl-C also cancels the requests under way, so an object
// may exist that the state does not have. The next up then says so, and can take it over.
func upAfterInterrupt(t *testing.T, dir string) {
	t.Helper()
	printed := &output{}
	s := openSandboxTo(t, io.MultiWriter(t.Output(), printed), repository, dir, "dev")
	ended := signalCommand(t, dir, "up", moment{printed: regexp.MustCompile("StatefulSet .* creating")}, syscall.SIGINT)
	var exit *exec.ExitError
	require.ErrorAs(t, ended, &exit)
	assert.Equal(t, 1, exit.ExitCode(), "%v", ended)
	if err := s.Apply(t.Context()); err != nil {
		require.Contains(t, printed.String(), "already exists", "%v", err)
		takingOver := startCommand(t, func(int, string) {}, []string{takeOver + "=true"}, "up", "--stack", "dev", "--dir", dir)
		require.NoError(t, takingOver.wait(), "with %s", takeOver)
	}
	assert.NotContains(t, printed.String(), "an earlier command was interrupted")
	assert.Empty(t, upChanges(t, s))
	require.NoError(t, s.Down(t.Context()))
}

// TestKilledDown kills `make down` at two moments, and then the control plane, and brings the stack up again.
func TestKilledDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSandbox(t, dir, "dev")
	require.NoError(t, s.Apply(t.Context()))
	c := newCluster(t, s)
	assertWhole := func(t *testing.T) {
		c.assertBound("checkpoints-pvc", "checkpoints-vol")
		c.assertOn("gpu", 4, c.rolePods("adult-income"))
		assert.Empty(t, upChanges(t, s))
	}

	// A volume that has lost its claim never binds again: up must replace it.
	t.Run("between a claim and its volume", func(t *testing.T) {
		killCommand(t, dir, "down", moment{printed: regexp.MustCompile("PersistentVolumeClaim checkpoints-vol deleted")})
		require.NoError(t, s.Apply(t.Context()))
		assertWhole(t)
	})
	// To the state, the namespace is still there: up must wait until it is gone.
	t.Run("while Kubernetes deletes a namespace", func(t *testing.T) {
		maps := c.CoreV1().ConfigMaps("persia")
		held, err := maps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		killCommand(t, dir, "down", moment{printed: regexp.MustCompile(`Namespace persia deleting \(\d+s\) waiting for`)})

		printed := &output{}
		again := openSandboxTo(t, io.MultiWriter(t.Output(), printed), repository, dir, "dev")
		up := begin(func() error { return again.Apply(t.Context()) })
		printed.await(t, up, "waiting until Namespace persia is deleted")
		_, err = maps.Patch(t.Context(), held.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, up.wait())
		assertWhole(t)
	})
	t.Run("without the control plane", func(t *testing.T) { testDownWithoutControlPlane(t, s, dir) })
}

// moment is when to kill a command: after it has printed a line, and then, unless the
// condition is nil, as soon as the condition holds.
type moment struct {
	printed *regexp.Regexp
	then    func(t *testing.T, dir string) bool
}

// etcdRuns reports whether kwokctl has started the first component of the control plane.
func etcdRuns(t *testing.T, dir string) bool {
	t.Helper()
	found, err := process.Matching(func(p process.Process) bool {
		path, _, _ := strings.Cut(p.Command, " --")
		return strings.HasPrefix(path, dir+"/") && strings.HasSuffix(path, "/bin/etcd")
	})
	require.NoError(t, err)
	return len(found) > 0
}

// killUp kills the command up at a moment. A moment with a condition is over when the control plane is ready,
// which this process may see too late on a busy machine. Then it starts again from nothing.
func killUp(t *testing.T, s *sandbox.Sandbox, dir string, at moment) {
	t.Helper()
	for range 5 {
		killCommand(t, dir, "up", at)
		if _, err := os.Stat(s.Cluster().Kubeconfig()); at.then == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		require.NoError(t, s.Down(t.Context()))
	}
	t.Fatal("the control plane was always ready before up was killed")
}

// killCommand runs the sandbox command and kills it, with the engine, at a moment.
func killCommand(t *testing.T, dir, command string, at moment) {
	t.Helper()
	_ = signalCommand(t, dir, command, at, syscall.SIGKILL)
}

// signalCommand runs the sandbox command, sends a signal to it at a moment, and returns how the command ended.
func signalCommand(t *testing.T, dir, command string, at moment, signal syscall.Signal) error {
	t.Helper()
	printed := make(chan struct{})
	reach := sync.OnceFunc(func() { close(printed) })
	run := startCommand(t, func(_ int, line string) {
		if at.printed.MatchString(line) {
			reach()
		}
	}, nil, command, "--stack", "dev", "--dir", dir)
	reached := true
	select {
	case <-printed:
	case <-run.ended:
		reached = false
	}
	if reached && at.then != nil {
		_, reached = eventually(patience, run.over, func() bool { return at.then(t, dir) })
	}
	run.signal(signal)
	ended := run.wait()
	require.True(t, reached, "%s never came to the moment %q", command, at.printed)
	return ended
}
