package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"persia/internal/testkit"
	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

// TestMain also runs this program as the first process of a machine.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "machine" {
		fmt.Fprintln(os.Stderr, "boot:", Boot(os.Args[3], slog.New(slog.NewTextHandler(os.Stderr, nil))))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// needNode skips a test where no node can run.
func needNode(t *testing.T) {
	t.Helper()
	if err := Missing(); err != nil {
		testkit.Skip(t, err)
	}
}

func TestAMachineLeavesNothingBehind(t *testing.T) {
	needNode(t)
	o := testOptions(t)
	mounts := testkit.Read(t, "/proc/self/mountinfo")
	shutDown := startMachine(t, o)
	found := testkit.Must(remains(o.Dir))(t)
	assert.Contains(t, found, "/sys/class/net/"+linkOf(o.Dir).name, "the host's end of the link")
	assert.Contains(t, found, "/run/runc/"+nameOf(o.Dir), "runc's record")
	assert.Greater(t, len(found), 2, "and one control group or more")
	assert.Equal(t, mounts, testkit.Read(t, "/proc/self/mountinfo"), "the host sees none of the machine's mounts")
	assert.Equal(t, "0\n", testkit.Read(t, "/proc/sys/vm/panic_on_oom"))

	shutDown()
	assertNothingLeft(t, o)
}

// startMachine runs a machine until its kubelet, the last program, has been started. shutDown ends it.
func startMachine(t *testing.T, o Options) (shutDown func()) {
	t.Helper()
	m := machine{Options: o, node: "node-a"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	_ = os.Remove(m.path(logDir, "kubelet.log")) // of its last life
	go func() { ended <- m.run(ctx, slog.New(slog.DiscardHandler)) }()
	require.Eventually(t, func() bool {
		log, _ := os.ReadFile(m.path(logDir, "kubelet.log"))
		return log != nil || len(ended) > 0
	}, time.Minute, 100*time.Millisecond)
	if len(ended) > 0 {
		t.Fatal(<-ended)
	}
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// TestAMachineFollowsItsNode: a machine runs as long as its node is there, and a second node waits for that.
func TestAMachineFollowsItsNode(t *testing.T) {
	needNode(t)
	o := testOptions(t)
	require.NoError(t, os.MkdirAll(o.Dir, 0o700))
	client := fake.NewClientset(realNode("node-a"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "simulated", UID: "s"}})
	r := runner{options: o, client: client, logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
		assertNothingLeft(t, o)
	}()
	runs := func(node, program string) bool {
		found := testkit.Must(process.Matching(func(p process.Process) bool {
			groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
			return strings.Contains(string(groups), nameOf(filepath.Join(o.Dir, node))) && strings.HasPrefix(p.Command, program)
		}))(t)
		return len(found) > 0
	}
	becomes := func(node, program string, want bool) {
		t.Helper()
		require.Eventually(t, func() bool { return runs(node, program) == want }, time.Minute, 100*time.Millisecond, "%s runs %s: %t", node, program, want)
	}
	becomes("node-a", "containerd", true)
	testkit.Must(client.CoreV1().Nodes().Create(t.Context(), realNode("node-b"), metav1.CreateOptions{}))(t)
	assert.Never(t, func() bool { return fileExists(filepath.Join(o.Dir, "node-b")) }, 3*poll, 100*time.Millisecond)

	require.NoError(t, client.CoreV1().Nodes().Delete(t.Context(), "node-a", metav1.DeleteOptions{}))
	becomes("node-a", bootProgram, false)
	require.Eventually(t, func() bool { return !fileExists(filepath.Join(o.Dir, "node-a")) }, time.Minute, 100*time.Millisecond, "its disk goes with its node")
	becomes("node-b", "containerd", true)
}

func realNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{Annotation: "real"}}}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func assertNothingLeft(t *testing.T, o Options) {
	t.Helper()
	assert.Empty(t, testkit.Must(remains(o.Dir))(t), "the link, the control groups, and runc's record go with the machine")
	processes, err := exec.Command("pgrep", "-f", o.Dir).CombinedOutput()
	assert.Error(t, err, "processes of the machine: %s", processes)
	require.NoError(t, os.RemoveAll(o.Dir), "nothing is mounted there")
}

// remains lists what a machine in dir leaves: a link's end on the host, control groups, and runc's record.
func remains(dir string) ([]string, error) {
	var remains []string
	for _, pattern := range []string{
		filepath.Join("/sys/class/net", linkOf(dir).name),
		filepath.Join("/sys/fs/cgroup", nameOf(dir)),
		filepath.Join("/sys/fs/cgroup/*", nameOf(dir)),
		filepath.Join(runcState, nameOf(dir)),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		remains = append(remains, found...)
	}
	return remains, nil
}

// testOptions returns the options of a machine that has no programs but containerd and
// the pause program, and whose control plane does not answer.
func testOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	tools := toolchain.Tools(filepath.Join(dir, "bin"))
	build := exec.Command("go", "build", "-o", tools.Path("pause"), "./pause")
	build.Dir = "../toolchain/node-network"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	o := Options{
		Dir: filepath.Join(dir, "node"), Disks: filepath.Join(dir, "disks"), Images: dir,
		Kubeconfig: filepath.Join(dir, "kubeconfig"), Tools: tools,
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:29999"}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	require.NoError(t, clientcmd.WriteToFile(*config, o.Kubeconfig))
	return o
}
