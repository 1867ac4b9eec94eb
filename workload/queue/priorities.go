package queue

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"persia/config"
	"persia/kube"
)

// PriorityClasses are the classes of a stack's pods.
type PriorityClasses struct {
	pulumi.ResourceState

	// Objects are the classes.
	Objects []pulumi.CustomResource
}

// NewPriorityClasses registers a PriorityClass for each priority.
func NewPriorityClasses(ctx *pulumi.Context, name string, opts ...pulumi.ResourceOption) (*PriorityClasses, error) {
	component := &PriorityClasses{}
	objects := kube.NewComponent(ctx, "persia:workload:PriorityClasses", name, component, opts...)
	for _, priority := range config.Priorities() {
		component.Objects = append(component.Objects, objects.Add(priority.Name, &schedulingv1.PriorityClass{
			ObjectMeta:  kube.Meta("", priority.Name, kube.Labels("priority", priority.Name)),
			Value:       int32(priority.Value),
			Description: priority.Description,
		}, nil))
	}
	return component, objects.End()
}
