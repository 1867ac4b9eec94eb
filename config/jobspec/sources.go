package jobspec

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/pod"
	"persia/gcp"
)

// foreign are the volume types that GKE nodes cannot mount: types of other clouds, and types
// whose plugins Kubernetes has removed or GKE does not have.
var foreign = []string{
	"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "flocker", "gitRepo", "glusterfs",
	"photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
}

// checkSource checks the source of a volume by the rules of the API server.
func checkSource(p *check.Problems, at *field.Path, v corev1.Volume) {
	if s := v.EmptyDir; s != nil {
		at := at.Child("emptyDir")
		if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
			p.Invalid(at.Child("sizeLimit"), s.SizeLimit.String(), "must be more than 0; omit it for no limit")
		}
		if s.Medium != "" {
			check.OneOf(p, at.Child("medium"), s.Medium, corev1.StorageMediumMemory)
		}
	}
	if s := v.HostPath; s != nil {
		checkHostPath(p, at.Child("hostPath"), *s)
	}
	if s := v.NFS; s != nil {
		check.Host(p, at.Child("nfs", "server"), s.Server)
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
		check.CSIDriver(p, at.Child("driver"), s.Driver)
		if s.FSType != nil {
			check.FileSystem(p, at.Child("fsType"), *s.FSType)
		}
		if s.NodePublishSecretRef != nil {
			p.Name(at.Child("nodePublishSecretRef", "name"), s.NodePublishSecretRef.Name, validation.IsDNS1123Subdomain)
		}
	}
	if s := v.GCEPersistentDisk; s != nil {
		at := at.Child("gcePersistentDisk")
		p.Name(at.Child("pdName"), s.PDName, validation.IsDNS1035Label)
		check.Range(p, at.Child("partition"), s.Partition, 0, 255, "")
		if s.FSType != "" {
			check.OneOf(p, at.Child("fsType"), s.FSType, gcp.FileSystems...)
		}
	}
	if s := v.ISCSI; s != nil {
		p.Forbidden(at.Child("iscsi"), "is supported only in persia:storage; define it there, and use mounts to mount it")
	}
	if s := v.Image; s != nil {
		pod.Image(p, at.Child("image", "reference"), s.Reference, "registry.example.com/model:1")
		if s.PullPolicy != "" {
			check.OneOf(p, at.Child("image", "pullPolicy"), s.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
		}
	}
	if s := v.Ephemeral; s != nil {
		checkEphemeral(p, at.Child("ephemeral", "volumeClaimTemplate"), s.VolumeClaimTemplate)
	}
}

func checkAbsolute(p *check.Problems, at *field.Path, file string) {
	switch {
	case file == "":
		p.Required(at, "write an absolute path, like /data")
	case !path.IsAbs(file):
		p.Invalid(at, file, "must be absolute; write %s", path.Join("/", file))
	}
}

// checkItems checks the keys of a Secret or a ConfigMap that a volume has as files.
func checkItems(p *check.Problems, at *field.Path, items []corev1.KeyToPath, mode *int32) {
	checkMode(p, at.Child("defaultMode"), mode)
	for i, item := range items {
		at := at.Child("items").Index(i)
		p.Name(at.Child("key"), item.Key, validation.IsConfigMapKey)
		checkRelative(p, at.Child("path"), item.Path)
		checkMode(p, at.Child("mode"), item.Mode)
	}
}

func checkMode(p *check.Problems, at *field.Path, mode *int32) {
	if mode != nil {
		check.Range(p, at, *mode, 0, 0o777, ", the number of an octal mode like 0777")
	}
}

// checkRelative checks the path of a file in a volume.
func checkRelative(p *check.Problems, at *field.Path, file string) {
	switch {
	case file == "":
		p.Required(at, "write a path in the volume, like settings.yml")
	case path.IsAbs(file) || slices.Contains(strings.Split(file, "/"), "..") || strings.HasPrefix(file, ".."):
		p.Invalid(at, file, "must be a path below the volume's root, without a leading / and without ..")
	}
}

func checkDownwardAPI(p *check.Problems, at *field.Path, items []corev1.DownwardAPIVolumeFile, mode *int32) {
	checkMode(p, at.Child("defaultMode"), mode)
	for i, item := range items {
		at := at.Child("items").Index(i)
		checkRelative(p, at.Child("path"), item.Path)
		checkMode(p, at.Child("mode"), item.Mode)
		switch {
		case (item.FieldRef == nil) == (item.ResourceFieldRef == nil):
			p.Forbidden(at, "must have exactly one of fieldRef and resourceFieldRef")
		case item.FieldRef != nil:
			pod.FieldRef(p, at.Child("fieldRef"), *item.FieldRef, pod.VolumeFields)
		default:
			ref := at.Child("resourceFieldRef")
			p.Name(ref.Child("containerName"), item.ResourceFieldRef.ContainerName, validation.IsDNS1123Label)
			pod.ResourceFieldRef(p, ref, *item.ResourceFieldRef)
		}
	}
}

func checkProjected(p *check.Problems, at *field.Path, s corev1.ProjectedVolumeSource) {
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
				check.Range(p, at.Child("expirationSeconds"), *s.ExpirationSeconds, 600, 1<<32, "; omit it for one hour")
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
	check.Unique(files, func(f file) string { return f.path }, func(i, _ int, path string) {
		p.Duplicate(files[i].at, path, "is also the path of another source; give each file its own path")
	})
}

// checkEphemeral checks the template of the claim that Kubernetes creates for each pod.
func checkEphemeral(p *check.Problems, at *field.Path, template *corev1.PersistentVolumeClaimTemplate) {
	if template == nil {
		p.Required(at, "write the claim, like {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Gi}}}}")
		return
	}
	check.Labels(p, at.Child("metadata", "labels"), template.Labels)
	check.Annotations(p, at.Child("metadata", "annotations"), template.Annotations)
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
		check.OneOf(p, spec.Child("accessModes").Index(i), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany)
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
		check.OneOf(p, spec.Child("volumeMode"), *mode, corev1.PersistentVolumeFilesystem)
	}
}
