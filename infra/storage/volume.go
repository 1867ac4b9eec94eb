// Package storage creates checkpoint volumes: a PersistentVolume that points at storage outside the
// cluster, and the one claim that binds to it. Each kind of source has a file.
//
// The objects in the cluster are only pointers, which destroy deletes. It keeps the storage: the
// next update finds what the stack created by its name, and takes it over (see [Find]).
package storage

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

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
	planned, claim := args.pair()
	volume := objects.AddWith(name, planned, backing.later, args.Needs,
		append(args.Pair.renew(planned), kube.After(backing.resources), deleteTimeout())...)
	// The claim names its volume as text, which creates no dependency: without this one, Pulumi
	// would delete a volume before its claim, and wait forever.
	//
	// Kubernetes refuses to change the requests of a static volume's claim, so the claim keeps its
	// first size while the volume grows.
	bound := objects.Add(name, claim, append(kube.Needs(volume), args.Needs...),
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

//go:embed volume.yaml
var manifest string

// pair returns a PersistentVolume and its claim.
func (a Args) pair() (*corev1.PersistentVolume, runtime.Object) {
	backend := backendOf(a.Volume.Source())
	objects := kube.Manifest(manifest, struct {
		Args
		Labels      map[string]string
		Provisioner *corev1.CSIPersistentVolumeSource
	}{a, labels.Merge(a.Volume.Labels, kube.Labels(a.Contents, a.Volume.Name)), backend.spec.CSI})
	volume := objects[0].(*corev1.PersistentVolume)
	volume.Spec.PersistentVolumeSource, volume.Spec.NodeAffinity = backend.spec, backend.affinity
	return volume, objects[1]
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
