package pedl

import (
	"fmt"
	"net/netip"

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
	service := path.Child("service")
	if f.Service.Type == corev1.ServiceTypeLoadBalancer && len(f.Service.LoadBalancerSourceRanges) == 0 {
		warn(service.Child("type"), "the load balancer lets everybody in; write loadBalancerSourceRanges")
	}
	for i, text := range f.Service.LoadBalancerSourceRanges {
		if r, err := netip.ParsePrefix(text); err == nil && r.Bits() < 8 {
			warn(service.Child("loadBalancerSourceRanges").Index(i), "%s is practically the world, and whoever reaches the master runs containers on the nodes of its agents; write the range that its users come from", text)
		}
	}
	if len(f.Service.ExternalIPs) > 0 {
		warn(service.Child("externalIPs"), "whoever reaches these addresses runs containers on the nodes of the agents; remove it, and reach the master by kubectl port-forward")
	}
	if f.Ingress.Enabled && len(f.Ingress.TLS) == 0 {
		warn(path.Child("ingress", "tls"), "without a certificate, passwords and everything else go unencrypted; write one for the hosts")
	}
	if f.Ingress.Enabled {
		warn(path.Child("ingress", "enabled"), "whoever reaches the ingress reaches the master, which runs containers on the nodes of its agents; let it in by annotations of your ingress controller whom you know only")
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
