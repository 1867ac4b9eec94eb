// Package queue installs JobSet, Kueue and the provisioner, and registers the queues in which jobs
// wait.
package queue

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/kube"
)

// The namespaces of the products, which hold nothing else.
const (
	JobSetNamespace      = "jobset-system"
	KueueNamespace       = "kueue-system"
	ProvisionerNamespace = "persia-provisioner"
)

//go:embed jobset.yaml
var jobSetManifest string

//go:embed kueue.yaml
var kueueManifest string

//go:embed kueue-config.yaml
var kueueConfiguration string

//go:embed provisioner.yaml
var provisionerManifest string

//go:embed provisioner.py
var provisionerScript string

// product is a program that runs beside the jobs: its manifest, and what the manifest leaves open.
type product struct {
	component string
	manifest  string
	image     config.Image
	requests  capacity.Resources
	// group is the API group of its kinds.
	group string
}

// ControllerArgs describes the installation of a product.
type ControllerArgs struct {
	// JobNamespace has the jobs. In other namespaces, a product changes nothing.
	JobNamespace string
	// StartMinutes is how long a job that Kueue has admitted may take until all of its pods are ready.
	StartMinutes int
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the product runs.
	Placement kube.Placement
	// Needs come before everything of the product. JobNamespace is among them, and Kueue's have the
	// definition of JobSets.
	Needs []pulumi.CustomResource
}

// InstallJobSet registers JobSet, whose controller makes the pods of jobs with the engine jobset.
func InstallJobSet(r *kube.Registrar, name string, args ControllerArgs) []pulumi.CustomResource {
	return product{
		component: "persia:jobset:Controller", manifest: jobSetManifest, group: jobSetGroup,
		image: config.ImageJobSet, requests: capacity.JobSetController,
	}.install(r, name, args, "")
}

// InstallKueue registers Kueue, which admits a job when there is room for all of its pods. While there are
// queues and Workloads, Kueue must run: they have finalizers that only Kueue removes.
func InstallKueue(r *kube.Registrar, name string, args ControllerArgs) []pulumi.CustomResource {
	configuration, err := kube.Fill(kueueConfiguration, args)
	r.Fail(err)
	return product{
		component: "persia:kueue:Controller", manifest: kueueManifest, group: kueueGroup,
		image: config.ImageKueue, requests: capacity.Kueue,
	}.install(r, name, args, configuration)
}

// InstallProvisioner registers the provisioner, which asks GKE for the nodes of pools with queued
// provisioning when all other replicas of a job run. Kueue would ask when it reserves the quota of the
// job: see docs/contribute/decisions.md. The provisioner runs before the jobs, and as long as they do.
func InstallProvisioner(r *kube.Registrar, name string, args ControllerArgs) []pulumi.CustomResource {
	return product{
		component: "persia:provisioner:Controller", manifest: provisionerManifest,
		image: config.ImagePython, requests: capacity.Provisioner,
	}.install(r, name, args, provisionerScript)
}

// ProvisionedPods returns the annotations of the nn-workers of a job, which wait for the nodes of the
// request that has the job's name.
func ProvisionedPods(job string) map[string]string {
	return map[string]string{gcp.AnnotationRequest: job, gcp.AnnotationRequestClass: gcp.ClassQueued}
}

func (p product) install(r *kube.Registrar, name string, args ControllerArgs, configuration string) []pulumi.CustomResource {
	operator, err := kube.ReadOperator(p.manifest, struct {
		Image, JobNamespace, Configuration, Hash string
		Requests                                 corev1.ResourceList
	}{
		args.Images.Reference(p.image.Reference()), args.JobNamespace, configuration, kube.Hash(configuration),
		kube.Requests(p.requests),
	})
	r.Fail(err)
	operator.Kinds, err = kinds(name, p.group)
	r.Fail(err)
	operator.Placement = args.Placement
	return kube.Needs(r.Component(p.component, name).AddOperator(name, operator, args.Needs))
}

//go:generate go run generate.go

// definitions are the CustomResourceDefinitions of JobSet and Kueue, made by generate.go from their Go
// modules.
//
//go:embed definitions.json
var definitions []byte

// kinds returns the kinds of an API group.
func kinds(name, group string) ([]kube.Kind, error) {
	var all []*extensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(definitions, &all); err != nil {
		return nil, fmt.Errorf("definitions.json: %w", err)
	}
	var kinds []kube.Kind
	for _, definition := range all {
		if definition.Spec.Group == group {
			kinds = append(kinds, kube.Kind{Resource: name + "-" + definition.Spec.Names.Plural, Definition: definition})
		}
	}
	if len(kinds) == 1 {
		kinds[0].Resource = name
	}
	return kinds, nil
}
