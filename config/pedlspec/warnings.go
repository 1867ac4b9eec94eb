package pedlspec

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/pod"
)

// Warnings returns what a valid stack may not have meant for PEDL. The path is of the
// platform.
func (f *Platform) Warnings(path *field.Path) []string {
	var warnings []string
	warn := func(path *field.Path, format string, args ...any) {
		warnings = append(warnings, path.String()+": "+fmt.Sprintf(format, args...))
	}
	for _, image := range []struct{ field, name string }{{"masterImage", f.MasterImage}, {"agentImage", f.AgentImage}} {
		if pod.IsLoose(image.name) {
			warn(path.Child(image.field), "%s has no tag other than latest, so pods that start later might run another release; add a tag", image.name)
		}
	}
	service := path.Child("service")
	if f.Service.Type == corev1.ServiceTypeNodePort {
		warn(service.Child("type"), "opens a port on every node, and anyone who can reach a node can run containers on the nodes of the agents; write ClusterIP, and use kubectl port-forward to reach the master")
	}
	if f.Service.Type != corev1.ServiceTypeClusterIP {
		warn(service.Child("type"), "the master speaks HTTP without encryption, so that passwords can be read on the way; write ClusterIP, and reach it by kubectl port-forward or by an ingress with tls")
	}
	for i, text := range f.Service.LoadBalancerSourceRanges {
		if r, err := netip.ParsePrefix(text); err == nil && r.Bits() < 8 {
			warn(service.Child("loadBalancerSourceRanges").Index(i), "%s admits practically everyone, and anyone who can reach the master can run containers on the nodes of its agents; write the range that its users come from", text)
		}
	}
	if len(f.Service.ExternalIPs) > 0 {
		warn(service.Child("externalIPs"), "anyone who can reach these addresses can run containers on the nodes of the agents; remove it, and use kubectl port-forward to reach the master")
	}
	if f.Ingress.Enabled && len(f.Ingress.TLS) == 0 {
		warn(path.Child("ingress", "tls"), "without a certificate, all traffic is unencrypted, including passwords; add one for the hosts")
	}
	if f.Ingress.Enabled {
		warn(path.Child("ingress", "enabled"), "anyone who can reach the ingress can run containers on the nodes of the agents; restrict access with the annotations of your ingress controller")
	}
	if f.Postgres.External != nil {
		return warnings
	}
	database := path.Child("postgresql")
	if !f.Postgres.Persistence.Enabled {
		warn(database.Child("persistence", "enabled"), "the database is lost when its pod is deleted")
	}
	if class := f.Postgres.Persistence.StorageClass; class != "" {
		warn(database.Child("persistence", "storageClass"), "the storage class %s determines what happens to the database when its claim is deleted. `pulumi destroy` keeps the claim, but deleting the cluster deletes it", class)
	}
	if len(f.Postgres.Service.ExternalIPs) > 0 {
		warn(database.Child("service", "externalIPs"), "anyone who can reach these addresses can reach the database")
	}
	return warnings
}
