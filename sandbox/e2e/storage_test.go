package e2e

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
	"persia/sandbox/toolchain"
)

// allSources creates what it can of each kind of source. Two jobs share a volume, and one of them has another.
const allSources = `
storage:
  - {name: directory, size: 1Ti, hostPath: {path: /var/lib/persia}}
  - {name: nfs, size: 1Ti, nfs: {server: 10.0.0.9, path: /exports}}
  - {name: iscsi, size: 1Ti, iscsi: {targetPortal: "10.0.0.3:3260", iqn: "iqn.2001-04.com.example:a", lun: 0}}
  - {name: any, size: 1Ti, csi: {driver: d.example.com, volumeHandle: h}}
  - {name: share, size: 1Ti, filestore: {instance: madeup-fs, create: {}}}
  - {name: bucket, size: 1Ti, gcsFuse: {bucket: madeup-checkpoints, create: {}, sidecar: {ephemeralStorage: 1Gi}}}
  - {name: disk, size: 1Ti, persistentDisk: {disk: madeup-disk, create: {}}}
  - {name: replicated, size: 1Ti, persistentDisk: {disk: madeup-replicated, zones: [us-central1-a, us-central1-b], create: {}}}
jobs:
  - {name: one, mounts: [{volume: share, mountPath: /share}, {volume: bucket, mountPath: /bucket}],
     volumes: [{name: cache, hostPath: {path: /mnt/disks/cache}}]}
  - {name: two, mounts: [{volume: share, mountPath: /share}]}
`

// TestStorage destroys a stack with all kinds of storage and brings it back over the storage that is kept.
// In the last life the stack file says that its data may go, and nothing is left.
func TestStorage(t *testing.T) {
	t.Parallel()
	s := newStack(t, allSources)
	s.start()
	changes, outputs := s.outputs()
	assert.Zero(t, changes["import"], "%v", changes)
	assert.Contains(t, outputs["checkpointVolumes"], object{"volume": "bucket", "claim": "bucket-claim",
		"storage": "gs://madeup-checkpoints", "onDestroy": "kept: the next `pulumi up` of this stack takes it over"})
	before := s.pairs("1Ti")
	s.assertMounted("one", "share-claim", "bucket-claim")
	s.assertMounted("two", "share-claim")
	assert.Empty(t, s.up())
	s.subtest(t, "what the API server admits", s.assertAdmission)
	s.subtest(t, "claims are protected", s.assertClaimsProtected)
	// The three of Google Cloud that have a size, one that has none there, and what is bound to them.
	s.run(t, []step{{name: "volumes grow in place", want: map[string]int{"update": 7},
		edit: `storage: [{name: share, size: 2Ti}, {name: disk, size: 2Ti}, {name: replicated, size: 2Ti}, {name: nfs, size: 2Ti}]`,
		then: func() {
			for _, name := range []string{"share", "disk", "replicated", "nfs"} {
				assert.Equal(s.t, before[name].UID, s.assertBound("persia", name+"-claim", name).UID, "%s is the volume that it was", name)
			}
		}}})
	for _, name := range []string{"share", "disk", "replicated"} {
		s.run(t, []step{{name: name + " never shrinks", edit: "storage: [{name: " + name + ", size: 1Ti}]",
			refused: "has 2048Gi, and never shrinks; write 2048Gi or more"}})
	}
	s.subtest(t, "destroy waits for a pod that mounts a claim", s.assertDestroyWaits)
	for _, text := range []string{
		"gcp:storage:Bucket gs://madeup-checkpoints deleted", "[retain]",
		"kept for the stacks that made it", "bucket madeup-checkpoints", "Filestore instance projects/my-project/locations/us-central1-a/instances/madeup-fs",
	} {
		assert.True(t, strings.Contains(s.printed.String(), text), "destroy prints %q", text)
	}
	s.assertEmpty()

	again := func(size string) {
		// Google Cloud's provider reads no labels of what it imports, since they may be others', so that it
		// updates each volume's storage. The network of the Filestore instance has none.
		changes := s.up()
		delete(changes, "create")
		assert.Equal(s.t, map[string]int{"import": 5, "update": 4}, changes)
		for name, volume := range s.pairs(size) {
			assert.Equal(s.t, before[name].Spec.CSI, volume.Spec.CSI, name)
		}
	}
	s.edit(`storage: [{name: directory, remove: true}, {name: nfs, remove: true}, {name: iscsi, remove: true}, {name: any, remove: true}, {name: bucket, size: 2Ti}]`)
	again("2Ti")
	s.assertUnchanged()
	s.subtest(t, "resources of the default provider of Google Cloud", s.takeProvider)
	s.down("storage")
	// What is taken over may change at once.
	s.edit(`
storage:
  - {name: share, size: 3Ti, filestore: {create: {deleteWithStack: madeup-fs}}}
  - {name: bucket, size: 3Ti, gcsFuse: {create: {deleteWithStack: madeup-checkpoints}}}
  - {name: disk, size: 3Ti, persistentDisk: {create: {deleteWithStack: madeup-disk}}}
  - {name: replicated, size: 3Ti, persistentDisk: {create: {deleteWithStack: madeup-replicated}}}`)
	again("3Ti")
	assert.Contains(t, s.printed.String(), "`pulumi destroy` deletes gs://madeup-checkpoints with all checkpoints, as the stack file says")
	s.down()
}

// pairs returns the volumes. Each is bound to its own claim, though other volumes have the same size.
func (s *stack) pairs(size string) map[string]*corev1.PersistentVolume {
	s.t.Helper()
	volumes := map[string]*corev1.PersistentVolume{}
	for _, item := range s.values["storage"].([]any) {
		name := nameOf(item).(string)
		volumes[name] = s.assertBound("persia", name+"-claim", name)
		assert.Equal(s.t, size, volumes[name].Spec.Capacity.Storage().String(), name)
	}
	return volumes
}

// assertMounted checks that all pods of a job run with these claims, and no others.
func (c cluster) assertMounted(job string, claims ...string) {
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

// byDigest is an image that is never pulled here.
var byDigest = "busybox@sha256:" + strings.Repeat("0", 64)

// assertAdmission: Pod Security admits these pods, as job one mounts a directory of the node; the policies refuse some.
func (s *stack) assertAdmission() {
	const images = "images here must be given by digest"
	for _, test := range []struct{ name, namespace, pod, refused string }{
		{"image by tag and digest", "persia", `containers: [{name: c, image: "busybox:1.36@sha256:` + strings.Repeat("0", 64) + `"}]`, ""},
		{"image of the stack, another tag", "persia", `containers: [{name: c, image: "persiaml/persia-cpu-runtime:next"}]`, ""},
		{"image of the stack, no tag", "persia", `containers: [{name: c, image: persiaml/persia-cpu-runtime}]`, ""},
		{"container of GKE", "persia", `containers: [{name: c, image: "gke.gcr.io/gcs-fuse-csi-driver-sidecar-mounter:v1"}]`, ""},
		{"NATS", "nats-io", `containers: [{name: c, image: "nats:2.11.0"}]`, ""},
		{"image by tag", "persia", `containers: [{name: c, image: "busybox:1.36"}]`, images},
		{"image without a tag", "nats-io", `containers: [{name: c, image: busybox}]`, images},
		{"name that begins like the stack's", "persia", `containers: [{name: c, image: "persiaml/persia-cpu-runtime-2:next"}]`, images},
		{"digest that is none", "persia", `containers: [{name: c, image: "busybox@sha256:0"}]`, images},
		{"image of an init container", "persia", `initContainers: [{name: i, image: "busybox:1.36"}]`, images},
		{"network of the node", "persia", `hostNetwork: true`, "must not share the network"},
		{"processes of the node", "persia", `hostPID: true`, "must not share the network"},
		{"shared memory of the node", "persia", `hostIPC: true`, "must not share the network"},
		{"directory of the node", "persia", `volumes: [{name: d, hostPath: {path: /mnt/disks/d}}]`, ""},
		{"privileged container", "persia", `containers: [{name: c, image: "` + byDigest + `", securityContext: {privileged: true}}]`, "must not be privileged"},
		{"privileged container, kube-system", "kube-system", `containers: [{name: c, image: "` + byDigest + `", securityContext: {privileged: true}}]`, ""},
		{"image by tag in another's namespace", "default", `containers: [{name: c, image: "busybox:1.36"}]`, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: byDigest}}}}
		require.NoError(s.t, yaml.UnmarshalStrict([]byte(test.pod), &pod.Spec), test.name)
		_, err := s.CoreV1().Pods(test.namespace).Create(s.t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		testkit.Fails(s.t, err, test.refused, test.name)
	}
	pod := s.podsOfRole("one", "dataloader")[0]
	for image, refused := range map[string]bool{"busybox": true, byDigest: false} {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: image}}}
		_, err := s.CoreV1().Pods("persia").UpdateEphemeralContainers(s.t.Context(), pod.Name, &pod, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		assert.Equal(s.t, refused, err != nil, "a container to debug with: %v", err)
	}
}

// assertClaimsProtected deletes claims as users do and as Pulumi does, and has Kubernetes empty the namespace.
func (s *stack) assertClaimsProtected() {
	claims := s.CoreV1().PersistentVolumeClaims("persia")
	const refused = "this claim holds data of the stack"
	background, foreground := metav1.DeletePropagationBackground, metav1.DeletePropagationForeground
	for policy, want := range map[*metav1.DeletionPropagation]string{nil: refused, &background: refused, &foreground: ""} {
		err := claims.Delete(s.t.Context(), "nfs-claim", metav1.DeleteOptions{PropagationPolicy: policy, DryRun: []string{metav1.DryRunAll}})
		testkit.Fails(s.t, err, want, "in the foreground what Pulumi does, or else what kubectl delete does")
	}
	_, err := claims.Create(s.t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: claimOf("", "")}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	assert.NoError(s.t, claims.Delete(s.t.Context(), "own", metav1.DeleteOptions{}), "a claim of a user's")
	err = claims.DeleteCollection(s.t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
	assert.ErrorContains(s.t, err, refused, "kubectl delete pvc --all")
	// Kubernetes keeps the claim of a static volume from growing.
	patch := []byte(`{"spec": {"resources": {"requests": {"storage": "2Ti"}}}}`)
	_, err = claims.Patch(s.t.Context(), "share-claim", types.MergePatchType, patch, metav1.PatchOptions{})
	assert.ErrorContains(s.t, err, "only dynamically provisioned pvc can be resized")
}

// claimOf asks for a volume of 1 GiB.
func claimOf(class, volume string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class, VolumeName: volume,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// volumeOf is an NFS server's.
func volumeOf(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.9", Path: "/" + name}},
	}}
}

// assertDestroyWaits destroys the stack while a pod that is not the stack's mounts a claim of it.
func (s *stack) assertDestroyWaits() {
	pods := s.CoreV1().Pods("persia")
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "nfs-claim"}}
	_, err := pods.Create(s.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "holder"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "holder", Image: byDigest}},
		Volumes:    []corev1.Volume{{Name: "held", VolumeSource: claim}},
	}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.await(func() bool {
		pod, err := pods.Get(s.t.Context(), "holder", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	}, "the holder runs")
	s.printed.reset()
	destroy := begin(func() error { return s.s.Destroy(s.t.Context()) })
	s.await(func() bool {
		claim, err := s.CoreV1().PersistentVolumeClaims("persia").Get(s.t.Context(), "nfs-claim", metav1.GetOptions{})
		return err == nil && claim.DeletionTimestamp != nil
	}, "the claim waits for its pod")
	if !toolchain.Official() { // which says so only at the end of its patience
		s.printed.await(s.t, destroy, "waiting for finalizers: kubernetes.io/pvc-protection")
	}
	require.NoError(s.t, pods.Delete(s.t.Context(), "holder", *metav1.NewDeleteOptions(0)))
	require.NoError(s.t, destroy.wait())
}

// takeProvider has the default provider in the state; the program's own takes all resources over and replaces none.
func (s *stack) takeProvider() {
	const provider = "pulumi:providers:gcp::"
	file := s.s.State().File()
	text := testkit.Must(os.ReadFile(file))(s.t)
	require.Contains(s.t, string(text), provider+"google")
	text = bytes.ReplaceAll(text, []byte(provider+"google"), []byte(provider+"default_7_38_0"))
	require.NoError(s.t, os.WriteFile(file, text, 0o600))
	assert.Equal(s.t, map[string]int{"create": 1}, s.up(), "the provider")
	assert.Empty(s.t, s.up())
}
