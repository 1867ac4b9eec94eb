// Package priority creates the PriorityClasses of a stack's pods.
package priority

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"persia/config"
	"persia/kube"
)

// Classes are the PriorityClasses of a stack.
type Classes struct {
	pulumi.ResourceState

	// Objects are the classes.
	Objects []pulumi.CustomResource
}

// NewClasses registers a PriorityClass for each priority, after needs.
func NewClasses(ctx *pulumi.Context, name string, opts ...pulumi.ResourceOption) (*Classes, error) {
	component := &Classes{}
	if err := ctx.RegisterComponentResource("persia:workload:PriorityClasses", name, component, opts...); err != nil {
		return nil, err
	}
	for _, priority := range config.Priorities() {
		registered, err := kube.Register(ctx, priority.Name, class(priority), pulumi.Parent(component))
		if err != nil {
			return nil, err
		}
		component.Objects = append(component.Objects, registered)
	}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
}

func class(priority config.Priority) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		ObjectMeta:  kube.Meta("", priority.Name, kube.Labels("priority", priority.Name)),
		Value:       int32(priority.Value),
		Description: priority.Description,
	}
}
