package stack

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/admission"
	"persia/workload/nats"
	"persia/workload/pedl"
	"persia/workload/persia"
	"persia/workload/queue"
)

// newPolicies registers the admission policies of the stack's namespaces.
func (d *deployment) newPolicies() []pulumi.CustomResource {
	cfg := d.cfg
	jobs := []string{persia.NamespaceName, nats.Namespace, persia.OperatorNamespace}
	if cfg.InstallsJobSet() {
		jobs = append(jobs, queue.JobSetNamespace)
	}
	if cfg.InstallsKueue() {
		jobs = append(jobs, queue.KueueNamespace)
	}
	if cfg.AsksForNodes() {
		jobs = append(jobs, queue.ProvisionerNamespace)
	}
	data := []string{persia.NamespaceName, pedl.NamespaceName}
	return admission.NewPolicies(d.in, "persia", admission.Args{
		Stack:           d.before.ID.String(),
		Namespaces:      append(jobs, pedl.NamespaceName, pedl.AgentNamespaceName),
		ImageNamespaces: jobs,
		Images:          imagesOf(cfg),
		ClaimNamespaces: data,
	})
}

// imagesOf returns all images of the stack except PEDL's, in each form in which nodes pull them:
// with and without credentials, and by the name in the stack file.
func imagesOf(cfg *config.Stack) []string {
	var named []string
	for _, image := range config.ImagesInStackNamespaces() {
		named = append(named, image.Reference())
	}
	named = append(named, cfg.Operator.Image)
	if cfg.InstallsJobSet() {
		named = append(named, config.ImageJobSet.Reference())
	}
	if cfg.InstallsKueue() {
		named = append(named, config.ImageKueue.Reference())
	}
	if cfg.AsksForNodes() {
		named = append(named, config.ImagePython.Reference())
	}
	for _, cluster := range cfg.NATSClusters() {
		named = append(named, cluster.Image)
	}
	for i := range cfg.Jobs {
		for _, role := range cfg.Jobs[i].Roles() {
			named = append(named, role.Image, role.DefaultImage)
		}
	}
	var images []string
	for _, image := range named {
		if image != "" {
			images = append(images, image, cfg.Images.Reference(image), cfg.Images.PrivateReference(image))
		}
	}
	return images
}
