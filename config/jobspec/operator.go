package jobspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/decode"
	"persia/config/pod"
	"persia/gcp"
)

// elsewhere is the remedy for everything that PERSIA's operator does not support.
const elsewhere = "or write engine: statefulset"

// operator checks that PERSIA's operator supports everything that a job uses.
func (c *checker) operator(path *field.Path, j *Job) {
	unset := Job{}
	decode.Defaults(&unset)
	if j.Script != nil {
		c.Invalid(path.Child("script"), j.Script.Runtime, "is not supported by PERSIA's operator, which starts the roles with persia-launcher; remove it, %s", elsewhere)
	}
	if j.RunID != unset.RunID {
		c.Invalid(path.Child("runId"), j.RunID, "is not supported by PERSIA's operator, which does not track runs; remove it, and rename the job to train again, %s", elsewhere)
	}
	if j.AutomountServiceAccountToken {
		c.Invalid(path.Child("automountServiceAccountToken"), true, "is not supported by PERSIA's operator, whose pods run as the service account default; remove it, %s", elsewhere)
	}
	for i, secret := range j.ImagePullSecrets {
		c.Invalid(path.Child("imagePullSecrets").Index(i), secret.Name, "is not supported by PERSIA's operator; remove it, and add the Secret to the service account default in the namespace persia, %s", elsewhere)
	}
	c.operatorVolumes(path.Child("volumes"), j.Volumes)
	c.operatorMounts(path.Child("mounts"), j.Mounts)
	for _, r := range j.Roles() {
		c.operatorRole(path.Child(r.Field), r, unset.Dataloader)
	}
}

func (c *checker) operatorRole(path *field.Path, r NamedRole, unset Role) {
	if r.TerminationGracePeriodSeconds != unset.TerminationGracePeriodSeconds {
		c.Invalid(path.Child("terminationGracePeriodSeconds"), r.TerminationGracePeriodSeconds, "is not supported by PERSIA's operator, whose pods have 30; remove it, %s", elsewhere)
	}
	c.operatorMounts(path.Child("mounts"), r.Mounts)
	pool, at := c.context.pool(r.NodePool), path.Child("nodePool")
	if pool.KeepsOff != "" {
		c.Invalid(at, r.NodePool, "has the taint %s, which the pods of PERSIA's operator do not tolerate; choose a pool without it, %s", pool.KeepsOff, elsewhere)
	}
	if pool.GPUs && pod.GPUs(r.Resources) == 0 {
		c.Invalid(at, r.NodePool, "has GPUs, and GKE keeps pods that request none off its nodes; choose a pool without GPUs, %s", elsewhere)
	}
}

// operatorMounts refuses volumes that not every node can mount: the operator gives the volumes
// of a job to all of its pods, and does not pin pods to nodes.
func (c *checker) operatorMounts(path *field.Path, mounts []Mount) {
	for i, mount := range mounts {
		volume, ok := c.context.volume(mount.Volume)
		at := path.Index(i).Child("volume")
		switch {
		case !ok:
		case volume.Sidecar:
			c.Invalid(at, mount.Volume, "uses gcsFuse, which requires a pod annotation that PERSIA's operator does not set; use a volume with filestore or nfs, %s", elsewhere)
		case !volume.reachesAll(mount) && !c.context.OneNode:
			c.Invalid(at, mount.Volume, "is on a single node, and PERSIA's operator does not pin pods to it; use a volume with filestore or nfs, %s", elsewhere)
		}
	}
}

// operatorVolumes refuses sources that are newer than the operator. It would omit them, and
// Kubernetes would create empty directories instead.
func (c *checker) operatorVolumes(path *field.Path, volumes []corev1.Volume) {
	for i, volume := range volumes {
		at := path.Index(i)
		switch {
		case volume.Ephemeral != nil:
			c.Invalid(at.Child("ephemeral"), volume.Name, "is a volume type that PERSIA's operator does not know; use a persistentVolumeClaim, %s", elsewhere)
		case volume.Image != nil:
			c.Invalid(at.Child("image"), volume.Name, "is a volume type that PERSIA's operator does not know; put the files in the image of the role, %s", elsewhere)
		case volume.CSI != nil && volume.CSI.Driver == gcp.DriverGCSFuse:
			c.Invalid(at.Child("csi", "driver"), volume.CSI.Driver, "requires a pod annotation that PERSIA's operator does not set; use another volume, %s", elsewhere)
		}
	}
}
