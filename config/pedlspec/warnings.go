package pedlspec

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/images"
	"persia/config/pod"
)

// dockerHub are the names of Docker Hub in the references of images.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// isRemoved reports whether the image is one that Bitnami no longer publishes: since August 2025,
// its repositories have only the tag latest (bitnami/containers, issue 83267).
func (i DatabaseImage) isRemoved() bool {
	return slices.Contains(dockerHub, i.Registry) && strings.HasPrefix(i.Repository, "bitnami/") && i.Tag != "latest"
}

// Warn warns of settings of PEDL that the user may not have meant. The path is of the platform.
func (f *Platform) Warn(p *check.Problems, path *field.Path) {
	for _, image := range []struct{ field, name string }{{"masterImage", f.MasterImage}, {"agentImage", f.AgentImage}} {
		if pod.IsLoose(image.name) {
			p.Warn(path.Child(image.field), "%s has no tag other than latest, so pods that start later might run another release; add a tag", image.name)
		}
	}
	if f.ImagePullPolicy == corev1.PullNever {
		p.Warn(path.Child("imagePullPolicy"), pod.NeverPulled)
	}
	service := path.Child("service")
	if f.Service.Type == corev1.ServiceTypeNodePort {
		p.Warn(service.Child("type"), "opens a port on every node, and anyone who can reach a node can run containers on the nodes of the agents; write ClusterIP, and use kubectl port-forward to reach the master")
	}
	if f.Service.Type != corev1.ServiceTypeClusterIP {
		p.Warn(service.Child("type"), "the master speaks HTTP without encryption, so that passwords can be read on the way; write ClusterIP, and reach it by kubectl port-forward or by an ingress with tls")
	}
	check.WarnOfDocumentation(p, service.Child("loadBalancerIP"), f.Service.LoadBalancerIP, "write the address that you have reserved, or omit it")
	warnOfDocumentation(p, service.Child("externalIPs"), f.Service.ExternalIPs, "write an address of the nodes' network")
	warnOfDocumentation(p, service.Child("loadBalancerSourceRanges"), f.Service.LoadBalancerSourceRanges, "write the range that its users come from")
	for i, text := range f.Service.LoadBalancerSourceRanges {
		if r, err := netip.ParsePrefix(text); err == nil && r.Bits() < 8 {
			p.Warn(service.Child("loadBalancerSourceRanges").Index(i), "%s admits practically everyone, and anyone who can reach the master can run containers on the nodes of its agents; write the range that its users come from", text)
		}
	}
	if len(f.Service.ExternalIPs) > 0 {
		p.Warn(service.Child("externalIPs"), "anyone who can reach these addresses can run containers on the nodes of the agents; remove it, and use kubectl port-forward to reach the master")
	}
	if f.Ingress.Enabled && len(f.Ingress.TLS) == 0 {
		p.Warn(path.Child("ingress", "tls"), "without a certificate, all traffic is unencrypted, including passwords; add one for the hosts")
	}
	if f.Ingress.Enabled {
		p.Warn(path.Child("ingress", "enabled"), "anyone who can reach the ingress can run containers on the nodes of the agents; restrict access with the annotations of your ingress controller")
	}
	if f.Postgres.External != nil {
		return
	}
	database := path.Child("postgresql")
	if image := f.Postgres.Image; image.isRemoved() {
		p.Warn(database.Child("image"), "%s/%s:%s: Bitnami has removed all tags but latest from this repository; write %s, or an image of your own registry",
			image.Registry, image.Repository, image.Tag, images.PostgreSQL.Reference())
	}
	if !f.Postgres.Persistence.Enabled {
		p.Warn(database.Child("persistence", "enabled"), "the database is lost when its pod is deleted")
	}
	if class := f.Postgres.Persistence.StorageClass; class != "" {
		p.Warn(database.Child("persistence", "storageClass"), "the storage class %s determines what happens to the database when its claim is deleted. `pulumi destroy` keeps the claim, but deleting the cluster deletes it", class)
	}
	warnOfDocumentation(p, database.Child("service", "externalIPs"), f.Postgres.Service.ExternalIPs, "write an address of the nodes' network")
	if len(f.Postgres.Service.ExternalIPs) > 0 {
		p.Warn(database.Child("service", "externalIPs"), "anyone who can reach these addresses can reach the database")
	}
}

func warnOfDocumentation(p *check.Problems, path *field.Path, texts []string, remedy string) {
	for i, text := range texts {
		check.WarnOfDocumentation(p, path.Index(i), text, remedy)
	}
}
