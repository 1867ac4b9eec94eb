package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

func TestConfigKeepsToThisMachine(t *testing.T) {
	c := New(t.TempDir(), "test", toolchain.Tools("/bin/tools"))
	content := testkit.Must(c.config("kwokctl.yaml", []int{1, 2, 3, 4, 5, 6}))(t)
	var config struct {
		Options map[string]any `json:"options"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(content), &config))

	assert.Equal(t, "127.0.0.1", config.Options["bindAddress"], "loopback only")
	for name, value := range config.Options {
		if strings.HasSuffix(name, "Binary") {
			assert.True(t, filepath.IsAbs(value.(string)), "%s is not downloaded", name)
		}
	}
}

func TestWhoseProcess(t *testing.T) {
	c := New("/sandbox/dev", "dev", toolchain.Tools("/tools"))
	for name, test := range map[string]struct {
		command   string
		component string
		kwokctl   bool
	}{
		"a component":                {"/sandbox/dev/kwok/clusters/dev/bin/etcd --name=node0", "etcd", false},
		"another cluster's":          {"/sandbox/prod/kwok/clusters/prod/bin/etcd --name=node0", "", false},
		"one of nobody's":            {"/usr/bin/etcd --data-dir=/sandbox/dev/kwok/clusters/dev/etcd", "", false},
		"who reads its log":          {"tail -f /sandbox/dev/kwok/clusters/dev/logs/etcd.log", "", false},
		"what else lies there":       {"/sandbox/dev/kwok/clusters/dev/bin/other --x", "", false},
		"kwokctl":                    {"/tools/kwokctl create cluster --name dev --config /sandbox/dev/kwokctl.yaml", "", true},
		"kwokctl of another cluster": {"/tools/kwokctl create cluster --name prod --config /sandbox/prod/kwokctl.yaml", "", false},
		"another kwokctl":            {"/usr/bin/kwokctl create cluster --config /sandbox/dev/kwokctl.yaml", "", false},
	} {
		p := process.Process{Command: test.command}
		assert.Equal(t, test.component, c.component(p), name)
		assert.Equal(t, test.kwokctl, c.isKwokctl(p), name)
	}
}

// fakeComponent runs a long sleep under the name of a component.
func fakeComponent(t *testing.T, c *Cluster, name string) process.Process {
	t.Helper()
	sleep := testkit.Must(exec.LookPath("sleep"))(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(c.binary(name)), 0o700))
	cmd := exec.Command(sleep, "300")
	cmd.Args[0] = c.binary(name) + " --fake"
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return testkit.Must(process.Find(cmd.Process.Pid))(t)
}

func TestStopEndsWhatAnInterruptedCreationLeft(t *testing.T) {
	root := t.TempDir()
	dev := New(filepath.Join(root, "dev"), "dev", toolchain.Tools("/tools"))
	prod := New(filepath.Join(root, "prod"), "prod", toolchain.Tools("/tools"))
	// No pid file tells of it.
	left, other := fakeComponent(t, dev, "etcd"), fakeComponent(t, prod, "etcd")
	require.Eventually(t, func() bool {
		dead, err := dev.dead()
		return err == nil && len(dead) == len(components)-1
	}, testkit.Patience, 10*time.Millisecond, "its command line shows a moment after its start")

	require.NoError(t, dev.Stop(t.Context()))
	assert.False(t, left.Running())
	assert.True(t, other.Running(), "of another cluster")
	assert.NoDirExists(t, dev.dir)
	require.NoError(t, dev.Stop(t.Context()), "there is nothing left to stop")
}

func TestStopKeepsWhatIsNotItsOwn(t *testing.T) {
	c := New(t.TempDir(), "test", toolchain.Tools("/tools"))
	note := filepath.Join(c.dir, "note")
	require.NoError(t, os.WriteFile(note, nil, 0o600))
	require.NoError(t, c.Stop(t.Context()))
	assert.FileExists(t, note)
}

func TestAFailedCreationSaysWhy(t *testing.T) {
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "kwokctl"), []byte("#!/bin/sh\necho no space left on device >&2\nexit 1\n"), 0o755))
	c := New(filepath.Join(t.TempDir(), "test"), "test", toolchain.Tools(tools))

	err := c.Start(t.Context(), &strings.Builder{})
	require.ErrorContains(t, err, "start control plane test: kwokctl create cluster: exit status 1\nno space left on device")
	assert.False(t, c.Running(t.Context()))
	require.NoError(t, c.Stop(t.Context()))
}

func TestRunning(t *testing.T) {
	for name, test := range map[string]struct {
		health  error
		running bool
	}{
		"healthy":             {nil, true},
		"too busy to answer":  {fmt.Errorf("kube-apiserver: %w", context.DeadlineExceeded), true},
		"not ready":           {fmt.Errorf("kube-apiserver: %w", errors.New("[-]etcd failed")), true},
		"a component is dead": {errDead{"kube-scheduler"}, false},
		"nobody listens":      {fmt.Errorf("kube-apiserver: %w", syscall.ECONNREFUSED), false},
	} {
		assert.Equal(t, test.running, running(test.health), name)
	}
}
