package stack

import (
	"slices"

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
	jobs := []string{persia.NamespaceName, nats.Namespace, persia.OperatorNamespace}
	for _, controller := range controllersOf(d.cfg) {
		jobs = append(jobs, controller.namespace)
	}
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
	var named []string
	for _, image := range config.ImagesInStackNamespaces() {
		named = append(named, image.Reference())
	}
	named = append(named, cfg.Operator.Image)
	for _, controller := range controllersOf(cfg) {
		named = append(named, controller.image)
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
