package config

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// takenVolumes matches the names of volumes that the program adds to pods.
var takenVolumes = regexp.MustCompile(`^(claim-\d+|launch|state|shared-memory)$`)

// checkVolumes checks the Kubernetes volumes of a job.
func checkVolumes(p *input.Problems, at *field.Path, volumes []corev1.Volume) {
	for i, volume := range volumes {
		at := at.Index(i)
		p.Name(at.Child("name"), volume.Name, validation.IsDNS1123Label)
		if takenVolumes.MatchString(volume.Name) {
			p.Invalid(at.Child("name"), volume.Name, "is the name of a volume that every job has; choose another name")
		}
		checkOneSource(p, at, volume)
	}
	input.UniqueField(p, at, "name", volumes, func(v corev1.Volume) string { return v.Name }, "is already used by volumes[%d]; give each volume its own name")
}

// checkOneSource checks that a volume has exactly one source, which must be valid.
func checkOneSource(p *input.Problems, at *field.Path, volume corev1.Volume) {
	var given []string
	source := reflect.ValueOf(volume.VolumeSource)
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			given = append(given, input.JSONName(source.Type().Field(i)))
		}
	}
	switch {
	case len(given) == 0:
		p.Required(at, "write a source, like persistentVolumeClaim: {claimName: data}")
	case len(given) > 1:
		p.Forbidden(at, "has %d sources, %s; write one of them", len(given), input.And(given))
	}
	if claim := volume.PersistentVolumeClaim; claim != nil {
		p.Name(at.Child("persistentVolumeClaim", "claimName"), claim.ClaimName, validation.IsDNS1123Subdomain)
	}
	for _, kind := range given {
		if slices.Contains(foreign, kind) {
			p.Forbidden(at.Child(kind), "is a volume type that GKE nodes cannot mount; use a persistentVolumeClaim, nfs, or mounts with a volume of the stack")
		}
	}
	checkSource(p, at, volume)
}

// checkHostPath checks a directory of the nodes. It refuses directories of the node's own
// software.
func checkHostPath(p *input.Problems, source *field.Path, host corev1.HostPathVolumeSource) {
	if host.Type != nil && *host.Type != "" {
		input.OneOf(p, source.Child("type"), *host.Type, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate,
			corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)
	}
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
		checkPropagation(p, at, mount)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			p.Forbidden(at.Child("subPathExpr"), "cannot be combined with subPath; write either subPath or subPathExpr")
		}
		input.SubPath(p, at.Child("subPath"), mount.SubPath)
		input.SubPath(p, at.Child("subPathExpr"), mount.SubPathExpr)
	}
}

// checkPropagation checks mountPropagation and recursiveReadOnly.
func checkPropagation(p *input.Problems, at *field.Path, mount corev1.VolumeMount) {
	if mode := mount.MountPropagation; mode != nil {
		// Bidirectional requires a privileged container.
		input.OneOf(p, at.Child("mountPropagation"), *mode, corev1.MountPropagationNone, corev1.MountPropagationHostToContainer)
	}
	recursive := mount.RecursiveReadOnly
	if recursive == nil || !input.OneOf(p, at.Child("recursiveReadOnly"), *recursive, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled) || *recursive == corev1.RecursiveReadOnlyDisabled {
		return
	}
	if propagates := mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone; !mount.ReadOnly || propagates {
		p.Invalid(at.Child("recursiveReadOnly"), *recursive, "requires readOnly: true and no mountPropagation; remove it, or change those")
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

// foreign are the volume types that GKE nodes cannot mount: types of other clouds, and types
// whose plugins Kubernetes has removed or GKE does not have.
var foreign = []string{
	"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "flocker", "gitRepo", "glusterfs",
	"photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
}

// checkSource checks the source of a volume by the rules of the API server.
func checkSource(p *input.Problems, at *field.Path, v corev1.Volume) {
	if s := v.EmptyDir; s != nil {
		at := at.Child("emptyDir")
		if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
			p.Invalid(at.Child("sizeLimit"), s.SizeLimit.String(), "must be more than 0; omit it for no limit")
		}
		if s.Medium != "" {
			input.OneOf(p, at.Child("medium"), s.Medium, corev1.StorageMediumMemory)
		}
	}
	if s := v.HostPath; s != nil {
		checkHostPath(p, at.Child("hostPath"), *s)
	}
	if s := v.NFS; s != nil {
		input.Host(p, at.Child("nfs", "server"), s.Server)
		checkAbsolute(p, at.Child("nfs", "path"), s.Path)
	}
	if s := v.Secret; s != nil {
		at := at.Child("secret")
		p.Name(at.Child("secretName"), s.SecretName, validation.IsDNS1123Subdomain)
		checkItems(p, at, s.Items, s.DefaultMode)
	}
	if s := v.ConfigMap; s != nil {
		at := at.Child("configMap")
		p.Name(at.Child("name"), s.Name, validation.IsDNS1123Subdomain)
		checkItems(p, at, s.Items, s.DefaultMode)
	}
	if s := v.DownwardAPI; s != nil {
		checkDownwardAPI(p, at.Child("downwardAPI"), s.Items, s.DefaultMode)
	}
	if s := v.Projected; s != nil {
		checkProjected(p, at.Child("projected"), *s)
	}
	if s := v.CSI; s != nil {
		at := at.Child("csi")
		input.CSIDriver(p, at.Child("driver"), s.Driver)
		if s.NodePublishSecretRef != nil {
			p.Name(at.Child("nodePublishSecretRef", "name"), s.NodePublishSecretRef.Name, validation.IsDNS1123Subdomain)
		}
	}
	if s := v.GCEPersistentDisk; s != nil {
		at := at.Child("gcePersistentDisk")
		p.Name(at.Child("pdName"), s.PDName, validation.IsDNS1035Label)
		input.Range(p, at.Child("partition"), s.Partition, 0, 255, "")
		if s.FSType != "" {
			input.OneOf(p, at.Child("fsType"), s.FSType, gcp.FileSystems...)
		}
	}
	if s := v.ISCSI; s != nil {
		p.Forbidden(at.Child("iscsi"), "is supported only in persia:storage; define it there, and use mounts to mount it")
	}
	if s := v.Image; s != nil {
		checkImage(p, at.Child("image", "reference"), s.Reference, "registry.example.com/model:1")
		if s.PullPolicy != "" {
			input.OneOf(p, at.Child("image", "pullPolicy"), s.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
		}
	}
	if s := v.Ephemeral; s != nil {
		checkEphemeral(p, at.Child("ephemeral", "volumeClaimTemplate"), s.VolumeClaimTemplate)
	}
}

func checkAbsolute(p *input.Problems, at *field.Path, file string) {
	switch {
	case file == "":
		p.Required(at, "write an absolute path, like /data")
	case !path.IsAbs(file):
		p.Invalid(at, file, "must be absolute; write %s", path.Join("/", file))
	}
}

// checkItems checks the keys of a Secret or a ConfigMap that a volume has as files.
func checkItems(p *input.Problems, at *field.Path, items []corev1.KeyToPath, mode *int32) {
	checkMode(p, at.Child("defaultMode"), mode)
	for i, item := range items {
		at := at.Child("items").Index(i)
		p.Name(at.Child("key"), item.Key, validation.IsConfigMapKey)
		checkRelative(p, at.Child("path"), item.Path)
		checkMode(p, at.Child("mode"), item.Mode)
	}
}

func checkMode(p *input.Problems, at *field.Path, mode *int32) {
	if mode != nil {
		input.Range(p, at, *mode, 0, 0o777, ", the number of an octal mode like 0777")
	}
}

// checkRelative checks the path of a file in a volume.
func checkRelative(p *input.Problems, at *field.Path, file string) {
	switch {
	case file == "":
		p.Required(at, "write a path in the volume, like settings.yml")
	case path.IsAbs(file) || slices.Contains(strings.Split(file, "/"), "..") || strings.HasPrefix(file, ".."):
		p.Invalid(at, file, "must be a path below the volume's root, without a leading / and without ..")
	}
}

func checkDownwardAPI(p *input.Problems, at *field.Path, items []corev1.DownwardAPIVolumeFile, mode *int32) {
	checkMode(p, at.Child("defaultMode"), mode)
	for i, item := range items {
		at := at.Child("items").Index(i)
		checkRelative(p, at.Child("path"), item.Path)
		checkMode(p, at.Child("mode"), item.Mode)
		switch {
		case (item.FieldRef == nil) == (item.ResourceFieldRef == nil):
			p.Forbidden(at, "must have exactly one of fieldRef and resourceFieldRef")
		case item.FieldRef != nil:
			checkFieldRef(p, at.Child("fieldRef"), *item.FieldRef, volumePodFields)
		default:
			ref := at.Child("resourceFieldRef")
			p.Name(ref.Child("containerName"), item.ResourceFieldRef.ContainerName, validation.IsDNS1123Label)
			checkResourceFieldRef(p, ref, *item.ResourceFieldRef)
		}
	}
}

func checkProjected(p *input.Problems, at *field.Path, s corev1.ProjectedVolumeSource) {
	checkMode(p, at.Child("defaultMode"), s.DefaultMode)
	type file struct {
		at   *field.Path
		path string
	}
	var files []file
	keys := func(at *field.Path, name string, items []corev1.KeyToPath) {
		p.Name(at.Child("name"), name, validation.IsDNS1123Subdomain)
		checkItems(p, at, items, nil)
		for i, item := range items {
			files = append(files, file{at.Child("items").Index(i).Child("path"), item.Path})
		}
	}
	for i, source := range s.Sources {
		at := at.Child("sources").Index(i)
		given := 0
		if s := source.Secret; s != nil {
			given++
			keys(at.Child("secret"), s.Name, s.Items)
		}
		if s := source.ConfigMap; s != nil {
			given++
			keys(at.Child("configMap"), s.Name, s.Items)
		}
		if s := source.DownwardAPI; s != nil {
			given++
			checkDownwardAPI(p, at.Child("downwardAPI"), s.Items, nil)
			for j, item := range s.Items {
				files = append(files, file{at.Child("downwardAPI", "items").Index(j).Child("path"), item.Path})
			}
		}
		if s := source.ServiceAccountToken; s != nil {
			given++
			at := at.Child("serviceAccountToken")
			checkRelative(p, at.Child("path"), s.Path)
			files = append(files, file{at.Child("path"), s.Path})
			if s.ExpirationSeconds != nil {
				input.Range(p, at.Child("expirationSeconds"), *s.ExpirationSeconds, 600, 1<<32, "; omit it for one hour")
			}
		}
		if source.ClusterTrustBundle != nil || source.PodCertificate != nil {
			given++
			p.Forbidden(at, "is a source that GKE clusters do not enable; use a secret or a configMap")
		}
		if given != 1 {
			p.Forbidden(at, "has %d sources; write exactly one of secret, configMap, downwardAPI, and serviceAccountToken", given)
		}
	}
	input.Unique(files, func(f file) string { return f.path }, func(i, _ int, path string) {
		p.Duplicate(files[i].at, path, "is also the path of another source; give each file its own path")
	})
}

// checkEphemeral checks the template of the claim that Kubernetes creates for each pod.
func checkEphemeral(p *input.Problems, at *field.Path, template *corev1.PersistentVolumeClaimTemplate) {
	if template == nil {
		p.Required(at, "write the claim, like {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Gi}}}}")
		return
	}
	input.Labels(p, at.Child("metadata", "labels"), template.Labels)
	input.Annotations(p, at.Child("metadata", "annotations"), template.Annotations)
	meta := template.ObjectMeta
	meta.Labels, meta.Annotations = nil, nil
	if !equality.Semantic.DeepEqual(meta, metav1.ObjectMeta{}) {
		p.Forbidden(at.Child("metadata"), "can have only labels and annotations, because the pod determines the name of the claim; remove the others")
	}
	spec := at.Child("spec")
	if len(template.Spec.AccessModes) == 0 {
		p.Required(spec.Child("accessModes"), "write [ReadWriteOnce]")
	}
	for i, mode := range template.Spec.AccessModes {
		input.OneOf(p, spec.Child("accessModes").Index(i), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany)
	}
	storage, asked := template.Spec.Resources.Requests[corev1.ResourceStorage]
	at = spec.Child("resources", "requests").Key("storage")
	switch {
	case !asked:
		p.Required(at, "write the size of the volume, like 100Gi")
	case storage.Sign() <= 0:
		p.Invalid(at, storage.String(), "must be more than 0, like 100Gi")
	case storage.CmpInt64(1<<20) < 0:
		p.Invalid(at, storage.String(), "is less than 1Mi; sizes without a unit are in bytes, so add one, like 100Gi")
	}
	if s := template.Spec; len(s.Resources.Limits) > 0 || len(s.Resources.Requests) > 1 || s.Selector != nil || s.VolumeName != "" || s.DataSource != nil || s.DataSourceRef != nil || s.VolumeAttributesClassName != nil {
		p.Forbidden(spec, "can have only accessModes, resources.requests.storage, storageClassName, and volumeMode; remove the others")
	}
	if class := template.Spec.StorageClassName; class != nil && *class != "" {
		p.Name(spec.Child("storageClassName"), *class, validation.IsDNS1123Subdomain)
	}
	if mode := template.Spec.VolumeMode; mode != nil {
		input.OneOf(p, spec.Child("volumeMode"), *mode, corev1.PersistentVolumeFilesystem)
	}
}
