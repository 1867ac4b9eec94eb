package pedl

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/pod"
)

// Warnings are what a valid stack may not have meant of PEDL. The path is that of the
// platform.
func (f *Platform) Warnings(path *field.Path) []string {
	var warnings []string
	warn := func(path *field.Path, format string, args ...any) {
		warnings = append(warnings, path.String()+": "+fmt.Sprintf(format, args...))
	}
	for _, image := range []struct{ field, name string }{{"masterImage", f.MasterImage}, {"agentImage", f.AgentImage}} {
		if pod.IsLoose(image.name) {
			warn(path.Child(image.field), "%s has no tag but latest, and pods that start later may run another release; write one with a tag", image.name)
		}
	}
	if f.Service.Type == corev1.ServiceTypeLoadBalancer && len(f.Service.LoadBalancerSourceRanges) == 0 {
		warn(path.Child("service", "type"), "the load balancer lets everybody in; write loadBalancerSourceRanges")
	}
	if f.Postgres.External != nil {
		return warnings
	}
	database := path.Child("postgresql")
	if !f.Postgres.Persistence.Enabled {
		warn(database.Child("persistence", "enabled"), "the database is lost with its pod, as the stack file says")
	}
	if class := f.Postgres.Persistence.StorageClass; class != "" {
		warn(database.Child("persistence", "storageClass"), "the class %s decides what becomes of the database when its claim is deleted. `pulumi destroy` leaves the claim, and a cluster that is deleted does not", class)
	}
	if len(f.Postgres.Service.ExternalIPs) > 0 {
		warn(database.Child("service", "externalIPs"), "everybody who reaches these addresses reaches the database")
	}
	return warnings
}
