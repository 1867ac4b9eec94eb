package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byDigest is an image that is never pulled here.
var byDigest = "busybox@sha256:" + strings.Repeat("0", 64)

// admitted returns a stack whose namespace persia admits any pod as far as Pod Security is
// concerned, as its job mounts a directory of the node: what is refused there, the
// admission policies refuse. Its volume is bound.
func admitted(t *testing.T) cluster {
	t.Helper()
	project := t.TempDir()
	configuration := stackText(t, project, madeUp{jobs: []object{job("train", object{
		"volumes": []object{{"name": "cache", "hostPath": object{"path": "/mnt/disks/cache"}}},
	})}})
	configuration["persia:storage"] = []object{{"name": "checkpoints", "size": "1Ti", "nfs": object{"server": "10.0.0.9", "path": "/export"}}}
	writeConfiguration(t, project, "madeup", configuration)
	s := newSandboxOf(t, project, t.TempDir(), "madeup")
	upChanges(t, s)
	return newCluster(t, s)
}

// TestAdmission checks what the API server admits in the namespaces of a stack. It then takes the
// stack down, which deletes what a user must not delete by hand.
func TestAdmission(t *testing.T) {
	nightly(t)
	t.Parallel()
	c := admitted(t)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	container := func(image string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}
	}
	with := func(change func(*corev1.PodSpec)) corev1.PodSpec {
		pod := container(byDigest)
		change(&pod)
		return pod
	}
	yes := true
	const images, host, privileged = "images here must be given by digest", "must not share the network", "must not be privileged"
	for name, test := range map[string]struct {
		namespace string
		pod       corev1.PodSpec
		refused   string
	}{
		"image by digest":                   {"persia", container(byDigest), ""},
		"image by tag and digest":           {"persia", container("busybox:1.36@sha256:" + strings.Repeat("0", 64)), ""},
		"image of the stack, another tag":   {"persia", container("persiaml/persia-cpu-runtime:next"), ""},
		"image of the stack, no tag":        {"persia", container("persiaml/persia-cpu-runtime"), ""},
		"container of GKE":                  {"persia", container("gke.gcr.io/gcs-fuse-csi-driver-sidecar-mounter:v1"), ""},
		"container of GKE, by region":       {"persia", container("us-central1-artifactregistry.gcr.io/gke-release/gke-release/gcs-fuse-csi-driver-sidecar-mounter:v1.24.3-gke.2"), ""},
		"GKE's registry, not GKE's images":  {"persia", container("us-central1-artifactregistry.gcr.io/gke-release-2/a:v1"), images},
		"name that begins like GKE's":       {"persia", container("gke.gcr.io.example.com/a:v1"), images},
		"GKE's name elsewhere":              {"persia", container("example.com/us-central1-artifactregistry.gcr.io/gke-release/a:v1"), images},
		"NATS":                              {"nats-io", container("nats:2.11.0"), ""},
		"image by tag":                      {"persia", container("busybox:1.36"), images},
		"image without a tag":               {"nats-io", container("busybox"), images},
		"name that begins like the stack's": {"persia", container("persiaml/persia-cpu-runtime-2:next"), images},
		"the stack's name elsewhere":        {"persia", container("example.com/persiaml/persia-cpu-runtime:next"), images},
		"digest that is none":               {"persia", container("busybox@sha256:0"), images},
		"image of an init container":        {"persia", with(func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{{Name: "i", Image: "busybox:1.36"}} }), images},
		"network of the node":               {"persia", with(func(p *corev1.PodSpec) { p.HostNetwork = true }), host},
		"processes of the node":             {"persia", with(func(p *corev1.PodSpec) { p.HostPID = true }), host},
		"shared memory of the node":         {"persia", with(func(p *corev1.PodSpec) { p.HostIPC = true }), host},
		"directory of the node": {"persia", with(func(p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/disks/d"}}}}
		}), ""},
		"privileged container":                {"persia", with(func(p *corev1.PodSpec) { p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes} }), privileged},
		"privileged container, kube-system":   {"kube-system", with(func(p *corev1.PodSpec) { p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes} }), ""},
		"image by tag in another's namespace": {"default", container("busybox:1.36"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: test.pod}
			_, err := c.CoreV1().Pods(test.namespace).Create(t.Context(), pod, dryRun)
			if test.refused == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.refused)
			}
		})
	}
	t.Run("debug container", func(t *testing.T) {
		pods := c.pods("persia", "app.kubernetes.io/name=dataloader")
		require.NotEmpty(t, pods)
		pod := pods[0].DeepCopy()
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "busybox"}}}
		options := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err := c.CoreV1().Pods("persia").UpdateEphemeralContainers(t.Context(), pod.Name, pod, options)
		require.ErrorContains(t, err, images)
		pod.Spec.EphemeralContainers[0].Image = byDigest
		_, err = c.CoreV1().Pods("persia").UpdateEphemeralContainers(t.Context(), pod.Name, pod, options)
		assert.NoError(t, err)
	})
	t.Run("claims", func(t *testing.T) { assertClaimsProtected(t, c) })
	t.Run("namespace deleted by hand", func(t *testing.T) { assertNamespaceComesBack(t, c) })
	require.NoError(t, c.s.Destroy(t.Context()), "Pulumi may delete the claims")
}

func assertClaimsProtected(t *testing.T, c cluster) {
	t.Helper()
	claims := c.CoreV1().PersistentVolumeClaims("persia")
	remove := func(name string, policy *metav1.DeletionPropagation) error {
		return claims.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: policy, DryRun: []string{metav1.DryRunAll}})
	}
	background, foreground := metav1.DeletePropagationBackground, metav1.DeletePropagationForeground
	const refused = "this claim holds data of the stack"
	assert.ErrorContains(t, remove("checkpoints-claim", nil), refused)
	assert.ErrorContains(t, remove("checkpoints-claim", &background), refused, "what kubectl delete does")
	assert.NoError(t, remove("checkpoints-claim", &foreground), "what Pulumi does")
	err := claims.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
	assert.ErrorContains(t, err, refused, "kubectl delete pvc --all")

	_, err = claims.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.NoError(t, claims.Delete(t.Context(), "own", metav1.DeleteOptions{}), "a claim of a user's")
}

// assertNamespaceComesBack deletes a namespace with a bound claim by hand, which the
// controllers of Kubernetes must be able to empty, and has Pulumi create all of it again.
func assertNamespaceComesBack(t *testing.T, c cluster) {
	t.Helper()
	claim, err := c.CoreV1().PersistentVolumeClaims("persia").Get(t.Context(), "checkpoints-claim", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CoreV1().Namespaces().Delete(t.Context(), "persia", metav1.DeleteOptions{}))
	c.await(func() bool {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), "persia", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the namespace is gone")

	_, err = c.s.Refresh(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.s.Apply(t.Context()))
	again, err := c.CoreV1().PersistentVolumeClaims("persia").Get(t.Context(), "checkpoints-claim", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEqual(t, claim.UID, again.UID)
	assert.Equal(t, corev1.ClaimBound, again.Status.Phase)
}
