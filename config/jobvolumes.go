package config

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// takenVolumes matches the names of volumes that the program adds to pods.
var takenVolumes = regexp.MustCompile(`^(claim-\d+|launch|state|shared-memory)$`)

// foreign are the volume types that GKE nodes cannot mount: types of other clouds, and types
// whose plugins Kubernetes has removed or GKE does not have.
var foreign = []string{
	"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "flocker", "gitRepo", "glusterfs",
	"photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
}

// checkVolumes checks the Kubernetes volumes of a job. The API server checks the fields of their
// sources.
func checkVolumes(p *input.Problems, at *field.Path, volumes []corev1.Volume) {
	for i, volume := range volumes {
		at := at.Index(i)
		p.Name(at.Child("name"), volume.Name, validation.IsDNS1123Label)
		if takenVolumes.MatchString(volume.Name) {
			p.Invalid(at.Child("name"), volume.Name, "is the name of a volume that every job has; choose another name")
		}
		if volume.VolumeSource == (corev1.VolumeSource{}) { // Kubernetes would create an empty directory
			p.Required(at, "write a source, like persistentVolumeClaim: {claimName: data}")
		}
		source := reflect.ValueOf(volume.VolumeSource)
		for i := range source.NumField() {
			if kind := input.JSONName(source.Type().Field(i)); !source.Field(i).IsNil() && slices.Contains(foreign, kind) {
				p.Forbidden(at.Child(kind), "is a volume type that GKE nodes cannot mount; use a persistentVolumeClaim, nfs, or mounts with a volume of the stack")
			}
		}
		if volume.HostPath != nil {
			checkHostPath(p, at.Child("hostPath"), *volume.HostPath)
		}
		if volume.NFS != nil {
			input.Host(p, at.Child("nfs", "server"), volume.NFS.Server)
		}
		if disk := volume.GCEPersistentDisk; disk != nil && disk.FSType != "" {
			input.OneOf(p, at.Child("gcePersistentDisk", "fsType"), disk.FSType, gcp.FileSystems...)
		}
		if volume.ISCSI != nil {
			p.Forbidden(at.Child("iscsi"), "is supported only in persia:storage; define it there, and use mounts to mount it")
		}
		if volume.Image != nil {
			checkImage(p, at.Child("image", "reference"), volume.Image.Reference, "registry.example.com/model:1")
		}
	}
	input.UniqueField(p, at, "name", volumes, func(v corev1.Volume) string { return v.Name }, "is already used by volumes[%d]; give each volume its own name")
}

// checkHostPath checks a directory of the nodes. It refuses directories of the node's own
// software.
func checkHostPath(p *input.Problems, source *field.Path, host corev1.HostPathVolumeSource) {
	at, directory := source.Child("path"), host.Path
	switch system := gcp.SystemDirectory(directory); {
	case !path.IsAbs(directory):
		p.Invalid(at, directory, "must be absolute; write %s", path.Join("/", directory))
	case slices.Contains(strings.Split(directory, "/"), ".."):
		p.Invalid(at, directory, "must be a path without ., .., repeated slashes, or a trailing slash; write %s", path.Clean(directory))
	case system != "":
		p.Invalid(at, directory, "overlaps with %s, which belongs to the node; use your own directory, like /var/lib/data", system)
	}
}

// checkHostPaths checks that the nodes of a role can create the directories that it mounts.
func (c *jobChecker) checkHostPaths(at *field.Path, j *Job, role *Role) {
	pool, _ := c.stack.Pool(role.NodePool)
	for i, volume := range j.Volumes {
		if host := volume.HostPath; host != nil && role.mountsVolume(volume.Name) && pool.ImageType == gcp.ImageCOS && path.IsAbs(host.Path) && gcp.SystemDirectory(host.Path) == "" && !gcp.WritableOnCOS(host.Path) {
			c.Invalid(at.Index(i).Child("hostPath", "path"), host.Path, "cannot be created on the nodes of pool %s, because the root file system of Container-Optimized OS is read-only; use a directory below %s, like /var/lib/data, or give the pool imageType: %s",
				pool.Name, input.Or(gcp.COSWritable()), gcp.ImageUbuntu)
		}
	}
}

// checkVolumeMounts checks the volumeMounts of a role.
func checkVolumeMounts(p *input.Problems, at *field.Path, job *Job, role *Role) {
	others := map[string]string{}
	for _, mount := range job.MountsOf(*role) {
		others[mount.MountPath] = "a mount of the volume " + mount.Volume
	}
	for i, mount := range role.VolumeMounts {
		at, clean := at.Index(i), path.Clean(mount.MountPath)
		checkMountedVolume(p, at.Child("name"), mount.Name, job.Volumes)
		checkMountPath(p, at.Child("mountPath"), mount.MountPath, others[clean])
		others[clean] = fmt.Sprintf("volumeMounts[%d]", i)
	}
}

func checkMountedVolume(p *input.Problems, at *field.Path, name string, volumes []corev1.Volume) {
	names := input.Words(volumes, func(v corev1.Volume) string { return v.Name })
	switch {
	case name != "" && slices.Contains(names, name):
	case len(names) == 0:
		p.Invalid(at, name, "must be one of the job's volumes, but it has none; add one in volumes, or use mounts to mount a volume of the stack")
	case name == "":
		p.Required(at, "write one of the job's volumes: %s", input.Or(names))
	default:
		p.Invalid(at, name, "must be one of the job's volumes: %s", input.Or(names))
	}
}

// checkMountPath checks a mountPath, which Kubernetes accepts unclean, for example with a
// trailing slash. A job may replace the program's shared memory with a volume of its own.
func checkMountPath(p *input.Problems, at *field.Path, mountPath, other string) {
	clean := path.Clean(mountPath)
	switch {
	case mountPath == "":
		p.Required(at, "write an absolute path, like /data")
	case !path.IsAbs(mountPath):
		p.Invalid(at, mountPath, "must be absolute; write %s", path.Join("/", mountPath))
	case clean == "/":
		p.Invalid(at, mountPath, "must be a directory below the root, like /data")
	case strings.Contains(mountPath, ":"):
		p.Invalid(at, mountPath, "must not contain a colon; rename the directory")
	case other != "":
		p.Duplicate(at, mountPath, "is already used by %s; give each volume its own path", other)
	case taken(mountPath, true) != "":
		p.Invalid(at, mountPath, "%s; choose another path, like /data", taken(mountPath, true))
	}
}

// warnOfVolumes warns of drivers that the stack does not have, and of directories that are too
// small or too large.
func (c *jobChecker) warnOfVolumes(at *field.Path, j *Job) {
	for i, volume := range j.Volumes {
		at := at.Index(i)
		if csi := volume.CSI; csi != nil && !c.stack.existing() && csi.Driver != gcp.DriverGCSFuse {
			c.Warn(at.Child("csi", "driver"), "%s is not installed in a cluster that the stack creates, so pods that mount the volume wait until you install it; use mounts with a volume of %s", csi.Driver, storageKey)
		}
		if dir := volume.EmptyDir; dir != nil && dir.SizeLimit != nil && dir.SizeLimit.Sign() > 0 && dir.SizeLimit.CmpInt64(1<<20) < 0 {
			c.Warn(at.Child("emptyDir", "sizeLimit"), "%s is less than 1Mi, and Kubernetes evicts a pod that writes more; sizes are in bytes, so write a unit, like 10Gi", dir.SizeLimit)
		}
		c.warnOfMemory(at.Child("emptyDir", "sizeLimit"), j, volume)
	}
}

// warnOfMemory warns of a directory in memory that may become larger than the memory of a role
// that mounts it: its files count as memory of the container.
func (c *jobChecker) warnOfMemory(at *field.Path, j *Job, volume corev1.Volume) {
	dir := volume.EmptyDir
	if dir == nil || dir.Medium != corev1.StorageMediumMemory || dir.SizeLimit == nil {
		return
	}
	for _, role := range j.Roles() {
		memory, _, limited := limitAmount(nil, role.Resources, corev1.ResourceMemory)
		if role.mountsVolume(volume.Name) && limited && dir.SizeLimit.Cmp(memory) >= 0 {
			c.Warn(at, "%s of files in memory leave nothing of the %s that %s may use, and Kubernetes kills a container that uses more; write less, or a larger limit", dir.SizeLimit, memory.String(), role.Field)
		}
	}
}

// warnOfImages warns of images that no node pulls, and of GPUs for servers.
func (c *jobChecker) warnOfImages(j *Job) {
	if j.ImagePullPolicy == corev1.PullNever {
		c.Warn(j.at.Child("imagePullPolicy"), neverPulled)
	}
	for _, role := range j.Roles() {
		if role.Server && GPUs(role.Resources) > 0 {
			c.Warn(j.at.Child(role.Field, "resources"), "%s requests GPUs, which PERSIA's servers do not use, but which are billed; remove %s", role.Field, ResourceGPU)
		}
	}
}
