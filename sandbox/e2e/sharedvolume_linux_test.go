package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"persia/config/jobspec"
)

// sharedClaim is a claim that the program does not make, as of a file server that the team has. A
// directory of a node is no volume for pods on two nodes, but the real nodes of a sandbox have one
// folder of the host.
const sharedClaim = "shared"

// share has a job use the shared claim in place of the example's volume.
func (r *training) share(job object) {
	delete(job, "mounts")
	job["volumes"] = []object{{"name": "checkpoints", "persistentVolumeClaim": object{"claimName": sharedClaim}}}
	for _, role := range []string{"nnWorker", "dataloader", "embeddingWorker", "embeddingParameterServer"} {
		job[role].(object)["volumeMounts"] = []object{{"name": "checkpoints", "mountPath": "/checkpoints"}}
	}
}

// provide makes the shared claim, if the jobs use it, as soon as up has created its namespace. The
// returned function waits for that.
func (r *training) provide(t *testing.T) (provided func()) {
	t.Helper()
	if r.engine != jobspec.EngineJobSet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.True(t, eventually(trainingPatience, ctx.Done(), func() bool { return r.createClaim(ctx) == nil }), "the shared claim")
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return func() { <-ended }
}

func (r *training) createClaim(ctx context.Context) error {
	config, err := r.s.Cluster().RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	size, none := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}, ""
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	_, err = client.CoreV1().PersistentVolumeClaims("persia").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: sharedClaim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &none, VolumeName: sharedClaim,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	create := corev1.HostPathDirectoryOrCreate
	_, err = client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: sharedClaim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/disks/checkpoints", Type: &create},
			},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
