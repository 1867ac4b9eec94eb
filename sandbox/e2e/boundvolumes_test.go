package e2e

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// storageCluster is the cluster of a stack with volumes.
type storageCluster struct{ cluster }

// assertPair checks that the volume NAME and the claim NAME-claim are bound to
// each other, and returns the volume's uid.
func (c storageCluster) assertPair(name, size string) types.UID {
	c.t.Helper()
	claim, err := c.CoreV1().PersistentVolumeClaims("persia").Get(c.t.Context(), name+"-claim", metav1.GetOptions{})
	require.NoError(c.t, err)
	volume, err := c.CoreV1().PersistentVolumes().Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	assert.Equal(c.t, corev1.ClaimBound, claim.Status.Phase, name)
	assert.Equal(c.t, name, claim.Spec.VolumeName)
	assert.Equal(c.t, corev1.VolumeBound, volume.Status.Phase, name)
	require.NotNil(c.t, volume.Spec.ClaimRef)
	assert.Equal(c.t, claim.UID, volume.Spec.ClaimRef.UID)
	assert.Equal(c.t, size, volume.Spec.Capacity.Storage().String())
	return volume.UID
}

// handle returns the handle of a volume for its driver, with its attributes.
func (c storageCluster) handle(name string) string {
	c.t.Helper()
	volume, err := c.CoreV1().PersistentVolumes().Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return fmt.Sprint(volume.Spec.CSI.VolumeHandle, volume.Spec.CSI.VolumeAttributes)
}

// assertMounted checks that all pods of a job run with these claims, and no
// others.
func (c storageCluster) assertMounted(job string, claims ...string) {
	c.t.Helper()
	pods := c.rolePods(job)
	c.assertOn("rest", 4, pods)
	for _, pod := range pods {
		var mounted []string
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				mounted = append(mounted, volume.PersistentVolumeClaim.ClaimName)
			}
		}
		assert.ElementsMatch(c.t, claims, mounted, pod.Name)
	}
}

// createHolder runs a pod that is not the stack's and mounts a claim of it.
func (c storageCluster) createHolder(claim string) {
	c.t.Helper()
	_, err := c.CoreV1().Pods("persia").Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "holder"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "holder", Image: byDigest}},
			Volumes: []corev1.Volume{{Name: "held", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.await(func() bool {
		pod, err := c.CoreV1().Pods("persia").Get(c.t.Context(), "holder", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	}, "the holder runs")
}
