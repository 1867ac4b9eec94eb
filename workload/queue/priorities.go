package queue

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"persia/config"
	"persia/kube"
)

// NewPriorityClasses registers a PriorityClass for each priority.
func NewPriorityClasses(r *kube.Registrar, name string) []pulumi.CustomResource {
	var classes []pulumi.CustomResource
	objects := r.Component("persia:workload:PriorityClasses", name)
	for _, priority := range config.Priorities() {
		classes = append(classes, objects.Add(priority.Name, &schedulingv1.PriorityClass{
			ObjectMeta:  kube.Meta("", priority.Name, kube.Labels("priority", priority.Name)),
			Value:       int32(priority.Value),
			Description: priority.Description,
		}, nil))
	}
	return classes
}
