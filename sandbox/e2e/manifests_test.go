package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"persia/config"
	"persia/config/input"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rewriteStack changes the configuration of a stack file.
func rewriteStack(t *testing.T, project, stack string, change func(object)) {
	t.Helper()
	file, err := input.ReadStackFile(os.DirFS(project), input.StackFileName(stack), config.Namespace)
	require.NoError(t, err)
	change(object(file.Config))
	text, err := file.Text()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(project, input.StackFileName(stack)), text, 0o600))
}

// rolePods returns the replicas of a job's roles.
func (c cluster) rolePods(job string) []corev1.Pod {
	c.t.Helper()
	var pods []corev1.Pod
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		pods = append(pods, c.podsOfRole(job, role)...)
	}
	return pods
}

func (c cluster) podsOfRole(job, role string) []corev1.Pod {
	c.t.Helper()
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{
		"persia_job": job, "app.kubernetes.io/name": role,
	}})
	pods := c.pods("persia", selector)
	require.NotEmpty(c.t, pods, "%s of %s", role, job)
	return pods
}
