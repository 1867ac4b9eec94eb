package config

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/decode"
	"persia/config/job"
	"persia/config/volume"
	"persia/gcp"
)

// elsewhere is how a job gets what PERSIA's operator does not give to pods.
const elsewhere = "or write engine: statefulset"

// engine checks that what makes a job's pods gives them what the job asks for.
func (v *validator) engine(path *field.Path, j *Job) {
	if j.Engine != job.EngineOperator {
		return
	}
	unset := Job{}
	decode.Defaults(&unset)
	if j.Script != nil {
		v.invalid(path.Child("script"), j.Script.Runtime, "is not for PERSIA's operator, which starts the roles with persia-launcher; remove it, %s", elsewhere)
	}
	if j.RunID != unset.RunID {
		v.invalid(path.Child("runId"), j.RunID, "is not for PERSIA's operator, which remembers no run; remove it and rename the job to train again, %s", elsewhere)
	}
	if j.AutomountServiceAccountToken {
		v.invalid(path.Child("automountServiceAccountToken"), true, "is not for PERSIA's operator, whose pods run as the service account default; remove it, %s", elsewhere)
	}
	for i, secret := range j.ImagePullSecrets {
		v.invalid(path.Child("imagePullSecrets").Index(i), secret.Name, "is not given to pods by PERSIA's operator; remove it and add the Secret to the service account default of the namespace persia, %s", elsewhere)
	}
	v.operatorVolumes(path.Child("volumes"), j.Volumes)
	v.operatorMounts(path.Child("mounts"), j.Mounts)
	for _, r := range j.Roles() {
		v.operatorRole(path.Child(r.Field), r, unset.Dataloader)
	}
}

func (v *validator) operatorRole(path *field.Path, r job.NamedRole, unset Role) {
	if r.TerminationGracePeriodSeconds != unset.TerminationGracePeriodSeconds {
		v.invalid(path.Child("terminationGracePeriodSeconds"), r.TerminationGracePeriodSeconds, "is not for PERSIA's operator, whose pods have 30; remove it, %s", elsewhere)
	}
	v.operatorMounts(path.Child("mounts"), r.Mounts)
	pool, _ := v.stack.pool(r.NodePool)
	at := path.Child("nodePool")
	if taint := keepsOff(pool); taint != "" {
		v.invalid(at, r.NodePool, "has the taint %s, which PERSIA's operator does not let its pods tolerate; choose a pool without, %s", taint, elsewhere)
	}
	if pool.GPU != nil && gpusOf(r.Resources) == 0 {
		v.invalid(at, r.NodePool, "has GPUs, and GKE keeps pods that ask for none away from its nodes; choose a pool without GPUs, %s", elsewhere)
	}
}

// keepsOff is the taint that keeps pods without tolerations off a pool. GKE has pods
// that ask for GPUs tolerate the one of GPUs by itself.
func keepsOff(pool NodePool) string {
	if pool.Spot {
		return gcp.TaintSpot
	}
	for _, taint := range pool.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return taint.Key
		}
	}
	return ""
}

// operatorMounts refuses volumes that not every pod can mount wherever it stands:
// the operator gives the volumes of a job to all of its pods, and pins none.
func (v *validator) operatorMounts(path *field.Path, mounts []Mount) {
	for i, mount := range mounts {
		found := slices.IndexFunc(v.stack.Storage, func(volume volume.Volume) bool { return volume.Name == mount.Volume })
		if found < 0 {
			continue
		}
		at := path.Index(i).Child("volume")
		switch volume := v.stack.Storage[found]; {
		case volume.MountedBySidecar():
			v.invalid(at, mount.Volume, "is over gcsFuse, for which GKE adds a container to pods with an annotation, and those of PERSIA's operator have none; mount a volume over filestore or nfs, %s", elsewhere)
		case !reachesAll(volume, mount):
			v.invalid(at, mount.Volume, "is a volume for one node, and PERSIA's operator pins no pod to it; mount one over filestore or nfs, %s", elsewhere)
		}
	}
}

// reachesAll reports whether pods on many nodes can have a mount.
func reachesAll(v volume.Volume, mount Mount) bool {
	return !v.OnOneNode() && (slices.Contains(v.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(v.AccessModes, corev1.ReadOnlyMany) && mount.ReadOnly)
}

// operatorVolumes refuses sources that are younger than the operator: it would leave
// them out, and Kubernetes would make an empty directory of each.
func (v *validator) operatorVolumes(path *field.Path, volumes []corev1.Volume) {
	for i, volume := range volumes {
		at := path.Index(i)
		switch {
		case volume.Ephemeral != nil:
			v.invalid(at.Child("ephemeral"), volume.Name, "is a kind of volume that PERSIA's operator does not know; use a persistentVolumeClaim, %s", elsewhere)
		case volume.Image != nil:
			v.invalid(at.Child("image"), volume.Name, "is a kind of volume that PERSIA's operator does not know; put the files into the image of the role, %s", elsewhere)
		case volume.CSI != nil && volume.CSI.Driver == gcp.DriverGCSFuse:
			v.invalid(at.Child("csi", "driver"), volume.CSI.Driver, "wants an annotation of the pods, and those of PERSIA's operator have none; use another volume, %s", elsewhere)
		}
	}
}

// UsesOperator reports whether a job is left to PERSIA's operator.
func (s *Stack) UsesOperator() bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool { return j.Engine == job.EngineOperator })
}

// engineWarnings are about pods that may stand anywhere.
func (s *Stack) engineWarnings() []string {
	var warnings []string
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.Engine == job.EngineOperator {
			warnings = append(warnings, fmt.Sprintf("%s: the operator's pods are not pinned to their node pools, which count in the plan only: each takes any node with room for it", s.pathOf(j.At().Child("engine"))))
		}
	}
	return warnings
}
