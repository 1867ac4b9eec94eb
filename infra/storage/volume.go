// Package storage creates checkpoint volumes: a PersistentVolume that points at storage outside the
// cluster, and the one claim that binds to it. Each kind of source has a file.
//
// The objects in the cluster are only pointers, which destroy deletes. It keeps the storage: the
// next update finds what the stack created by its name, and takes it over (see [Find]).
package storage

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"persia/config"
	"persia/infra/iam"
	"persia/kube"
)

// Args describes a volume.
type Args struct {
	Cloud
	Volume config.Volume
	// Found is the result of [Find] for its storage.
	Found Found
	// Pair is the volume's pair in the state of the stack.
	Pair Pair
	Keys *iam.Keys
	// Namespace holds the claim and the pods that mount it.
	Namespace string
	// Contents names the data of the volume, like checkpoints: it is the application in the labels of the pair.
	Contents string
	// Annotations are the annotations of both objects.
	Annotations map[string]string
	// Needs come before the pair: the cluster and the namespace.
	Needs []pulumi.CustomResource
}

// Volume is a PersistentVolume and the claim that is bound to it.
type Volume struct {
	// Claim is the claim itself, after which everything of the volume is there.
	Claim pulumi.CustomResource
	// Bucket is the name of the bucket that pods have to be granted to mount the volume, or nil.
	Bucket pulumi.StringInput

	// `pulumi destroy` prints the outputs as it deletes them.
	Name      string `pulumi:"volume"`
	ClaimName string `pulumi:"claim"`
	Storage   string `pulumi:"storage"`
	OnDestroy string `pulumi:"onDestroy"`
}

const componentType = "persia:storage:Volume"

// NewVolume registers the pair, and what its source needs to be there and to be reached.
func NewVolume(r *kube.Registrar, name string, args Args) *Volume {
	objects := r.Component(componentType, name)
	backing := registerBacking(r, args, objects.Child(args.Needs))
	planned := persistentVolume(args)
	volume := objects.AddWith(name, planned, backing.later, args.Needs,
		append(args.Pair.renew(planned), kube.After(backing.resources), deleteTimeout())...)
	// The claim names its volume as text, which creates no dependency: without this one, Pulumi
	// would delete a volume before its claim, and wait forever.
	//
	// Kubernetes refuses to change the requests of a static volume's claim, so the claim keeps its
	// first size while the volume grows.
	bound := objects.Add(name, claim(args), append(kube.Needs(volume), args.Needs...),
		pulumi.IgnoreChanges([]string{"spec.resources.requests"}), deleteTimeout())
	of := &Volume{Claim: bound, Bucket: backing.bucket, Name: args.Volume.Name, ClaimName: args.Volume.Claim,
		Storage: args.Volume.Source().String(), OnDestroy: onDestroy(args)}
	objects.Outputs = of
	return of
}

// deleteTimeout ends the wait for a claim that a pod still mounts, or for a volume whose claim is still there.
func deleteTimeout() pulumi.ResourceOption {
	return pulumi.Timeouts(&pulumi.CustomTimeouts{Delete: "5m"})
}

// noStorageClass keeps a pair to itself. Without it the cluster's default class
// would answer the claim with a new, empty volume.
const noStorageClass = ""

func persistentVolume(args Args) *corev1.PersistentVolume {
	volume, backend := args.Volume, backendOf(args.Volume.Source())
	planned := &corev1.PersistentVolume{
		ObjectMeta: meta("", volume.Name, args),
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(volume.Size)},
			AccessModes:                   volume.AccessModes,
			PersistentVolumeReclaimPolicy: volume.ReclaimPolicy,
			StorageClassName:              noStorageClass,
			MountOptions:                  volume.MountOptions,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       "PersistentVolumeClaim",
				Namespace:  args.Namespace,
				Name:       volume.Claim,
			},
			PersistentVolumeSource: backend.spec,
			NodeAffinity:           backend.affinity,
		},
	}
	if csi := planned.Spec.CSI; csi != nil && volume.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		// A driver deletes only volumes that it created.
		planned.Annotations = labels.Merge(planned.Annotations, map[string]string{"pv.kubernetes.io/provisioned-by": csi.Driver})
	}
	return planned
}

func claim(args Args) *corev1.PersistentVolumeClaim {
	volume, class := args.Volume, noStorageClass
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: meta(args.Namespace, volume.Claim, args),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      volume.AccessModes,
			StorageClassName: &class,
			VolumeName:       volume.Name,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(volume.Size)},
			},
		},
	}
}

// onDestroy says whether `pulumi destroy` keeps the storage of a volume.
func onDestroy(args Args) string {
	switch volume := args.Volume; {
	case volume.DeletesData():
		return "deleted, with all " + args.Contents
	case volume.Creates():
		return "kept: the next `pulumi up` of this stack takes it over"
	case !args.Existing && volume.HostPath != nil:
		return "lost with its node"
	default:
		return "kept"
	}
}

func meta(namespace, name string, args Args) metav1.ObjectMeta {
	meta := kube.Meta(namespace, name, labels.Merge(args.Volume.Labels, kube.Labels(args.Contents, args.Volume.Name)))
	meta.Annotations = args.Annotations
	return meta
}
