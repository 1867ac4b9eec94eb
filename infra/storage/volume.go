package storage

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/kube"
)

// Args describes a volume.
type Args struct {
	Volume config.Volume
	// Project is the Google Cloud project, or empty if nothing may be changed
	// there: then whoever runs the cluster grants the pods what they need.
	Project string
	// Namespace holds the claim and the pods that mount it.
	Namespace string
	// ServiceAccount is the Kubernetes service account of these pods.
	ServiceAccount string
	// Needs come before the pair: the cluster and the namespace.
	Needs []pulumi.Resource
}

// Volume is a PersistentVolume and the claim that is bound to it.
type Volume struct {
	pulumi.ResourceState

	// VolumeName and ClaimName are the objects' names.
	VolumeName pulumi.StringOutput `pulumi:"volumeName"`
	ClaimName  pulumi.StringOutput `pulumi:"claimName"`
}

// NewVolume registers the pair, and what its source needs to be reached.
func NewVolume(ctx *pulumi.Context, name string, args Args, opts ...pulumi.ResourceOption) (*Volume, error) {
	component := &Volume{}
	if err := ctx.RegisterComponentResource("persia:storage:Volume", name, component, opts...); err != nil {
		return nil, err
	}
	child := kube.Child(component, args.Needs)

	if args.Volume.GCSFuse != nil && args.Project != "" {
		if err := grantBucket(ctx, name, args, child); err != nil {
			return nil, err
		}
	}
	volume, err := kube.Register(ctx, name, persistentVolume(args), child)
	if err != nil {
		return nil, err
	}
	// The claim names its volume as text, which makes no dependency: without
	// this one a volume would be deleted before its claim, and wait for ever.
	if _, err := kube.Register(ctx, name, claim(args), child, pulumi.DependsOn([]pulumi.Resource{volume})); err != nil {
		return nil, err
	}

	component.VolumeName = pulumi.String(args.Volume.Name).ToStringOutput()
	component.ClaimName = pulumi.String(args.Volume.Claim).ToStringOutput()
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{
		"volumeName": component.VolumeName,
		"claimName":  component.ClaimName,
	})
}

// noStorageClass keeps a pair to itself. Without it the cluster's default class
// would answer the claim with a new, empty volume.
const noStorageClass = ""

func persistentVolume(args Args) *corev1.PersistentVolume {
	volume := args.Volume
	return &corev1.PersistentVolume{
		ObjectMeta: kube.Meta("", volume.Name, kube.Labels("checkpoints", volume.Name)),
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(volume.Size)},
			AccessModes:                   volume.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              noStorageClass,
			MountOptions:                  volume.MountOptions,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       "PersistentVolumeClaim",
				Namespace:  args.Namespace,
				Name:       volume.Claim,
			},
			PersistentVolumeSource: source(volume),
		},
	}
}

func claim(args Args) *corev1.PersistentVolumeClaim {
	volume, class := args.Volume, noStorageClass
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: kube.Meta(args.Namespace, volume.Claim, kube.Labels("checkpoints", volume.Name)),
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

func source(volume config.Volume) corev1.PersistentVolumeSource {
	switch {
	case volume.HostPath != nil:
		return hostPath(*volume.HostPath)
	default:
		return gcsFuse(*volume.GCSFuse)
	}
}
