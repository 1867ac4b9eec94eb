package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testStatus runs `persia status` with the kubeconfig of the sandbox, while all pods of the job run, and
// with one more that no node holds.
func testStatus(t *testing.T, c cluster, dir string) {
	program := filepath.Join(t.TempDir(), "persia")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "persia/cmd/persia").CombinedOutput()
	require.NoError(t, err, string(output))
	kubeconfig, _, err := sandboxCommand(t, dir, "kubeconfig")
	require.NoError(t, err)
	status := func() string {
		output, err := exec.CommandContext(t.Context(), program, "status", "--kubeconfig", strings.TrimSpace(kubeconfig)).CombinedOutput()
		require.NoError(t, err, string(output))
		return string(output)
	}
	before := status()
	assert.Regexp(t, `(?m)^job adult-income: (\d) of (\d) pods are ready$`, before)
	assert.NotContains(t, before, "next:")

	pod := c.pods("persia", "app.kubernetes.io/name=dataloader")[0]
	pod.ObjectMeta = metav1.ObjectMeta{Name: "too-large", Namespace: "persia", Labels: pod.Labels}
	pod.Spec.NodeName = ""
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}}
	_, err = c.CoreV1().Pods("persia").Create(t.Context(), &pod, metav1.CreateOptions{})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, c.CoreV1().Pods("persia").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	}()
	await(t, func() bool {
		now := status()
		return strings.Contains(now, "  no room: too-large: ") && strings.Contains(now, "    next: kubectl -n persia describe pod too-large\n")
	}, "status says why the pod waits")
}
