package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/internal/testkit"
)

// TestDev follows the stack dev, one node with a GPU and PERSIA's adult-income example, from up to destroy.
func TestDev(t *testing.T) {
	t.Parallel()
	s := stackIn(t, t.TempDir(), "dev")
	persia := filepath.Join(t.TempDir(), "persia")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", persia, "persia/cmd/persia").CombinedOutput()
	require.NoError(t, err, string(output))
	// The sandbox command looks for its toolchain next to the stack files.
	require.NoError(t, os.Symlink(testkit.Must(filepath.Abs(".."))(t), filepath.Join(s.project, "sandbox")))
	s.subtest(t, "commands before up", func() { s.assertCommandsBeforeUp(persia) })

	stdout, _, err := s.command("up")
	require.NoError(t, err, stdout)
	s.assertTour("make up", stdout)
	kubeconfig, _, err := s.command("kubeconfig")
	require.NoError(t, err)
	assert.FileExists(t, strings.TrimSuffix(kubeconfig, "\n"), "the path and nothing else")
	s.cluster = newCluster(t, s.s)

	s.subtest(t, "objects and outputs", s.assertDev)
	s.subtest(t, "the tour's edit", func() {
		before := s.values
		s.edit(`jobs: [{name: adult-income, dataloader: {replicas: 2}}]`)
		shown := s.preview(persia, "preview")
		s.assertTour("make preview", shown)
		assert.LessOrEqual(s.t, strings.Count(shown, "\n"), 20, shown)
		s.values = before
		s.edit()
	})
	s.subtest(t, "comments", func() { s.assertComment(persia) })
	s.subtest(t, "status", func() { s.assertStatus(persia) })
	s.subtest(t, "ports", func() { assertListensOnLoopbackOnly(s.t, s.dir) })
	s.subtest(t, "drift", func() {
		s.scale("adult-income-dataloader", 2)
		assert.Equal(s.t, map[string]int{"update": 1}, s.refresh())
		assert.Equal(s.t, map[string]int{"update": 1}, s.up())
		assert.Len(s.t, s.podsOfRole("adult-income", "dataloader"), 1)
	})
	s.subtest(t, "protected from deletion", s.assertProtected)
	s.destroy()
	_, _, err = s.command("down")
	require.NoError(t, err)
	s.down()
}

// preview runs a command of persia on a preview by the sandbox.
func (s *stack) preview(persia, command string) string {
	return string(testkit.Must(exec.CommandContext(s.t.Context(), persia, command, "--stack", s.name, "--",
		executable, "preview", "--dir", s.dir, "--repository", s.project, "--toolchain", binDir()).Output())(s.t))
}

// assertTour compares what a command prints with docs/start/sandbox.md, but for "…" and how a terminal breaks lines.
func (s *stack) assertTour(command, printed string) {
	_, shown, found := strings.Cut(testkit.Read(s.t, filepath.Join(repository, "docs/start/sandbox.md")), "    $ "+command+"\n")
	require.True(s.t, found, command)
	shown = strings.ReplaceAll(shown[:regexp.MustCompile(`(?m)^\S`).FindStringIndex(shown)[0]], "\n      ", " ")
	for line := range strings.SplitSeq(shown, "\n") {
		if line = strings.TrimPrefix(line, "    "); !strings.Contains(line, "…") && !strings.HasPrefix(line, "up after") {
			assert.Contains(s.t, printed, line+"\n")
		}
	}
}

func (s *stack) assertCommandsBeforeUp(persia string) {
	first := s.preview(persia, "preview")
	assert.LessOrEqual(s.t, strings.Count(first, "\n"), 60, first)
	for _, command := range []string{"status", "kubeconfig"} {
		_, stderr, err := s.command(command)
		assert.Error(s.t, err)
		assert.Contains(s.t, stderr, "make up STACK=dev")
	}
	stdout, _, err := s.command("preview")
	require.NoError(s.t, err)
	assert.Contains(s.t, stdout, "kubernetes:apps/v1:StatefulSet")
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, s.name, "passphrase"), []byte("wrong"), 0o600))
	_, stderr, err := s.command("preview")
	assert.Error(s.t, err)
	assert.Contains(s.t, stderr, "incorrect passphrase", "the CLI ends before it sends an event")
	_, _, err = s.command("down")
	assert.NoError(s.t, err, "there is nothing to take down")
	_, stderr, err = s.command("up", "--stack", "nowhere")
	assert.Error(s.t, err)
	assert.Contains(s.t, stderr, "Pulumi.nowhere.yaml")
}

// assertDev looks at the stack after up, and gets its outputs from an up that changes nothing.
func (s *stack) assertDev() {
	s.assertOn("gpu", 4, s.rolePods("adult-income"))
	s.assertOn("system", 1, s.pods("nats-io", "nats_cluster=persia-nats-service"))
	s.assertOn("system", 1, s.pods("nats-io", "app.kubernetes.io/name=nats-operator"))
	s.assertOn("system", 1, s.pods("persia", "app.kubernetes.io/name=completion"))
	assert.Len(s.t, s.pods("persia", ""), 6, "no other pod")
	assert.Len(s.t, s.nodes(), 3)
	s.assertBound("persia", "checkpoints-pvc", "checkpoints-vol")
	assert.Empty(s.t, s.pods("kube-system", ""), "GKE installs the driver: no DaemonSet")

	// The API server has held the PodMonitoring against Google's own schema.
	text, err := s.CoreV1().RESTClient().Get().
		AbsPath("/apis/monitoring.googleapis.com/v1/namespaces/persia/podmonitorings/metrics-gateways").DoRaw(s.t.Context())
	require.NoError(s.t, err)
	var monitoring struct {
		Spec struct{ Selector metav1.LabelSelector }
	}
	require.NoError(s.t, json.Unmarshal(text, &monitoring))
	s.assertOn("system", 1, s.pods("persia", metav1.FormatLabelSelector(&monitoring.Spec.Selector)))

	changes, outputs := s.outputs()
	assert.Empty(s.t, changes, "second up")
	assert.Equal(s.t, "persia-dev", outputs["clusterName"])
	assert.NotEmpty(s.t, outputs["clusterEndpoint"])
	assert.Equal(s.t, "[secret]\n", string(s.output("kubeconfig")))
	assert.Contains(s.t, outputs["kubeconfig"], "gke-gcloud-auth-plugin")
	assert.Equal(s.t, "nats://persia-nats-service.nats-io.svc:4222", outputs["natsUrl"])
	assert.Equal(s.t, []any{object{"volume": "checkpoints-vol", "claim": "checkpoints-pvc",
		"storage": "directory /var/lib/persia of the node", "onDestroy": "lost with its node"}}, outputs["checkpointVolumes"])
}

// assertComment previews an edit as a pull request comment, which testdata/preview-comment.md shows.
func (s *stack) assertComment(persia string) {
	before := s.values
	s.edit(`
nats: {maxPayload: 33554432}
storage: [{name: checkpoints-vol, rename: checkpoints, claim: checkpoints}]
jobs: [{name: adult-income, dataloader: {replicas: 2}, mounts: [{volume: checkpoints, mountPath: /checkpoints}]}]`)
	text := s.preview(persia, "comment")
	fingerprint := regexp.MustCompile(`(?m)^<!-- persia-changes: [0-9a-f]{16} -->$`)
	require.Regexp(s.t, fingerprint, text)
	assert.Equal(s.t, fingerprint.FindString(text), fingerprint.FindString(s.preview(persia, "comment")), "the engine's order must not matter")
	want := testkit.ReadGolden(s.t, "preview-comment.md", text)
	assert.Equal(s.t, normalized(want), normalized(text), "go test ./e2e -run TestDev/comments -update writes it again")
	s.values = before
	s.edit()
}

// hashes are the parts of annotations that change with any script of the program.
var hashes = regexp.MustCompile(`("|persia-changes: )([0-9a-f]{16}|[0-9a-f]{8})\b`)

// normalized returns the lines of a comment without the engine's order and without hashes.
func normalized(comment string) []string {
	return slices.Sorted(strings.Lines(hashes.ReplaceAllString(comment, "${1}HASH")))
}

// assertStatus runs `persia status` while all pods of the job run, and with one more that no node holds.
func (s *stack) assertStatus(persia string) {
	status := func() string {
		output, err := exec.CommandContext(s.t.Context(), persia, "status", "--kubeconfig", s.s.Kubeconfig()).CombinedOutput()
		require.NoError(s.t, err, string(output))
		return string(output)
	}
	before := status()
	assert.Regexp(s.t, `(?m)^job adult-income: (\d) of (\d) pods are ready$`, before)
	assert.NotContains(s.t, before, "next:")

	pod := s.podsOfRole("adult-income", "dataloader")[0]
	pod.ObjectMeta = metav1.ObjectMeta{Name: "too-large", Namespace: "persia", Labels: pod.Labels}
	pod.Spec.NodeName = ""
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}}
	testkit.Must(s.CoreV1().Pods("persia").Create(s.t.Context(), &pod, metav1.CreateOptions{}))(s.t)
	await(s.t, func() bool {
		now := status()
		return strings.Contains(now, "  no room: too-large: ") && strings.Contains(now, "    next: kubectl -n persia describe pod too-large\n")
	}, "status says why the pod waits")
	assert.NoError(s.t, s.CoreV1().Pods("persia").Delete(s.t.Context(), pod.Name, metav1.DeleteOptions{}))
}

// assertProtected: nothing replaces a pool or the cluster, or destroys the stack, of a protected cluster.
func (s *stack) assertProtected() {
	const (
		pool    = `nodePools: [{name: gpu, maxPodsPerNode: 64}]`
		network = `cluster: {network: {controlPlane: 172.16.1.0/28}}`
		permit  = `cluster: {replace: persia-dev}`
	)
	replaces := func(edits ...string) (int, error) {
		before := s.values
		defer func() { s.values = before }()
		s.edit(edits...)
		changes, _, err := preview(s.t, s.s)
		return changes["replace"], err
	}
	s.up(`cluster: {deletionProtection: true}`)
	_, err := replaces(pool)
	require.Error(s.t, err)
	_, err = replaces(network, permit)
	require.Error(s.t, err)
	s.edit()
	require.ErrorContains(s.t, s.s.Destroy(s.t.Context()), "Cluster persia-dev, NodePool persia-dev-")
	s.up(`cluster: {deletionProtection: false}`)
	assert.Equal(s.t, 1, testkit.Must(replaces(pool))(s.t))
}
