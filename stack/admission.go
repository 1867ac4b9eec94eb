package stack

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/config/input"
	"persia/infra/admission"
	"persia/workload/nats"
	"persia/workload/pedl"
	"persia/workload/persia"
	"persia/workload/queue"
)

// newPolicies registers the admission policies of the stack's namespaces.
func (d *deployment) newPolicies() []pulumi.CustomResource {
	jobs := append([]string{persia.NamespaceName, nats.Namespace, persia.OperatorNamespace},
		input.Words(controllersOf(d.cfg), func(c controller) string { return c.namespace })...)
	return admission.NewPolicies(d.in, "persia", admission.Args{
		Stack:           d.before.ID.String(),
		Namespaces:      append(jobs, pedl.NamespaceName, pedl.AgentNamespaceName),
		ImageNamespaces: jobs,
		Images:          imagesOf(d.cfg),
		ClaimNamespaces: []string{persia.NamespaceName, pedl.NamespaceName},
	})
}

// controller is what creates or admits the pods of jobs, in a namespace of its own.
type controller struct {
	installed        bool
	namespace, image string
}

func controllersOf(cfg *config.Stack) []controller {
	return slices.DeleteFunc([]controller{
		{cfg.InstallsJobSet(), queue.JobSetNamespace, config.ImageJobSet.Reference()},
		{cfg.InstallsKueue(), queue.KueueNamespace, config.ImageKueue.Reference()},
		{cfg.AsksForNodes(), queue.ProvisionerNamespace, config.ImagePython.Reference()},
	}, func(c controller) bool { return !c.installed })
}

// imagesOf returns all images of the stack except PEDL's, in each form in which nodes pull them: with and without
// credentials, and by the name in the stack file.
func imagesOf(cfg *config.Stack) []string {
	named := slices.Concat(input.Words(config.ImagesInStackNamespaces(), config.Image.Reference),
		[]string{cfg.Operator.Image},
		input.Words(controllersOf(cfg), func(c controller) string { return c.image }),
		input.Words(cfg.NATSClusters(), func(c config.NATSCluster) string { return c.Image }))
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
