package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

// Operator is PERSIA's own operator, which runs if a job has `engine: operator`.
type Operator struct {
	// Image is an image with PERSIA's Python package, persia-k8s-utils on the path, and python3.
	// Required if the operator runs.
	Image string `json:"image,omitempty"`
}

// operatorImageExample is an image for messages.
const operatorImageExample = "us-central1-docker.pkg.dev/my-project/persia/training:1.0"

// check checks settings. Used is whether the operator runs a job.
func (s Operator) check(p *input.Problems, path *field.Path, used bool) {
	at := path.Child("image")
	switch {
	case s.Image == "" && used:
		p.Required(at, "write the image of PERSIA's operator by its digest or version, like %s: examples/training/Dockerfile builds one, and "+
			"for upstream's `docker buildx imagetools inspect persiaml/persia-cpu-runtime` shows the digest", operatorImageExample)
	case s.Image == "":
	case isLooseImage(s.Image):
		p.Invalid(at, s.Image, "may be another image tomorrow, and its program creates pods; write a digest or the tag of a "+
			"version, like %s", operatorImageExample)
	default:
		checkImage(p, at, s.Image, operatorImageExample)
	}
}

// operator checks that PERSIA's operator supports everything that a job uses.
func (c *jobChecker) operator(j *Job) {
	refuse := func(at *field.Path, value any, why string) {
		c.Invalid(at, value, "%s, or write engine: statefulset", why)
	}
	unset := Job{}
	input.Defaults(&unset)
	if j.Script != nil {
		refuse(j.at.Child("script"), j.Script.Runtime,
			"is not supported by PERSIA's operator, which starts the roles with persia-launcher; remove it")
	}
	if j.RunID != unset.RunID {
		refuse(j.at.Child("runId"), j.RunID,
			"is not supported by PERSIA's operator, which does not track runs; remove it, and rename the job to train again")
	}
	for i, secret := range j.ImagePullSecrets {
		refuse(j.at.Child("imagePullSecrets").Index(i), secret.Name, "is not supported by PERSIA's operator; remove it, and add "+
			"the Secret to the service account default in the namespace persia")
	}
	// Kubernetes would create an empty directory instead of a source that the operator does not know.
	for i, volume := range j.Volumes {
		switch at := j.at.Child("volumes").Index(i); {
		case volume.Ephemeral != nil:
			refuse(at.Child("ephemeral"), volume.Name, "is a volume type that PERSIA's operator does not know; use a persistentVolumeClaim")
		case volume.Image != nil:
			refuse(at.Child("image"), volume.Name, "is a volume type that PERSIA's operator does not know; put the files in the image of the role")
		}
	}
	// The operator gives the volumes of a job to all of its pods, and does not pin pods to nodes.
	mounts := func(list *field.Path, mounts []Mount) {
		for i, mount := range mounts {
			switch volume, at := c.stack.volume(mount.Volume), list.Index(i).Child("volume"); {
			case volume == nil:
			case volume.MountedBySidecar():
				refuse(at, mount.Volume, "uses gcsFuse, which requires a pod annotation that PERSIA's operator does not set; "+
					"use a volume with filestore or nfs")
			case !volume.reachesAll(mount) && !c.stack.hasOneNode():
				refuse(at, mount.Volume, "is on a single node, and PERSIA's operator does not pin pods to it; use a volume with filestore or nfs")
			}
		}
	}
	mounts(j.at.Child("mounts"), j.Mounts)
	for _, r := range j.Roles() {
		at := j.at.Child(r.Field)
		mounts(at.Child("mounts"), r.Mounts)
		if seconds := r.TerminationGracePeriodSeconds; seconds != unset.Dataloader.TerminationGracePeriodSeconds {
			refuse(at.Child("terminationGracePeriodSeconds"), seconds, "is not supported by PERSIA's operator, whose pods have 30; remove it")
		}
		pool, _ := c.stack.Pool(r.NodePool)
		if taint := keepsOff(pool); taint != "" {
			refuse(at.Child("nodePool"), r.NodePool,
				"has the taint "+taint+", which the pods of PERSIA's operator do not tolerate; choose a pool without it")
		}
		if pool.GPU != nil && GPUs(r.Resources) == 0 {
			refuse(at.Child("nodePool"), r.NodePool, "has GPUs, and GKE keeps pods that request none off its nodes; choose a pool without GPUs")
		}
	}
}

// reachesAll reports whether pods on all nodes can mount the volume.
func (v *Volume) reachesAll(mount Mount) bool {
	return !v.OnOneNode() && (slices.Contains(v.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(v.AccessModes, corev1.ReadOnlyMany) && mount.ReadOnly)
}
