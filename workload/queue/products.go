// Package queue installs JobSet, Kueue and the provisioner, and registers the queues in which jobs wait.
package queue

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"persia/capacity"
	"persia/config"
	"persia/config/input"
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

// InstallJobSet registers JobSet, whose controller makes the pods of jobs with the engine jobset.
func InstallJobSet(r *kube.Registrar, name string, needs []pulumi.CustomResource) []pulumi.CustomResource {
	return install(r, "persia:jobset:Controller", name, needs, jobSetGroup, kube.Operator{
		Manifest: jobSetManifest, Image: config.ImageJobSet.Reference(), Requests: capacity.JobSetController,
	})
}

// InstallKueue registers Kueue, which admits a job when there is room for all of its pods. It comes after the
// definition of JobSets. While there are queues and Workloads, Kueue must run: they have finalizers that only
// Kueue removes.
func InstallKueue(r *kube.Registrar, name string, queue config.Queue, needs []pulumi.CustomResource) []pulumi.CustomResource {
	return install(r, "persia:kueue:Controller", name, needs, kueueGroup, kube.Operator{
		Manifest: kueueManifest, Image: config.ImageKueue.Reference(), Requests: capacity.Kueue,
		Configuration: kube.Fill(kueueConfiguration, queue),
	})
}

// InstallProvisioner registers the provisioner, which asks GKE for the nodes of pools with queued
// provisioning when all other replicas of a job run. Kueue would ask when it reserves the quota of the
// job: see docs/contribute/decisions.md. The provisioner runs before the jobs, and as long as they do.
func InstallProvisioner(r *kube.Registrar, name string, needs []pulumi.CustomResource) []pulumi.CustomResource {
	return install(r, "persia:provisioner:Controller", name, needs, "", kube.Operator{
		Manifest: provisionerManifest, Image: config.ImagePython.Reference(), Requests: capacity.Provisioner, Configuration: provisionerScript,
	})
}

// install registers an operator with the kinds of an API group.
func install(r *kube.Registrar, component, name string, needs []pulumi.CustomResource, group string,
	operator kube.Operator) []pulumi.CustomResource {
	var err error
	operator.Kinds, err = kinds(name, group)
	r.Fail(err)
	return kube.Needs(r.Component(component, name).AddOperator(name, operator, needs))
}

// ProvisionedPods returns the annotations of the nn-workers of a job, which wait for the nodes of the
// request that has the job's name.
func ProvisionedPods(job string) map[string]string {
	return map[string]string{gcp.AnnotationRequest: job, gcp.AnnotationRequestClass: gcp.ClassQueued}
}

// AskedPools returns the annotation of a job that may run on several pools, or nil. It is not in the pods, so that one more
// pool restarts none of them.
func AskedPools(pools []config.Pool) map[string]string {
	if len(pools) < 2 {
		return nil
	}
	return map[string]string{config.PoolsLabel: strings.Join(input.Words(pools, func(p config.Pool) string { return p.Name }), ",")}
}

//go:generate go run generate.go

// definitions are the CustomResourceDefinitions of JobSet and Kueue, made by generate.go from their Go modules.
//
//go:embed definitions.json
var definitions []byte

// kinds returns the kinds of an API group.
func kinds(name, group string) (map[string]*extensionsv1.CustomResourceDefinition, error) {
	var all []*extensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(definitions, &all); err != nil {
		return nil, fmt.Errorf("definitions.json: %w", err)
	}
	kinds := map[string]*extensionsv1.CustomResourceDefinition{}
	for _, definition := range all {
		resource := name
		if group != jobSetGroup { // which has one kind
			resource += "-" + definition.Spec.Names.Plural
		}
		if definition.Spec.Group == group {
			kinds[resource] = definition
		}
	}
	return kinds, nil
}
