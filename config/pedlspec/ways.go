package pedlspec

import (
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// checkExternalIPs checks the external addresses of a Service. GKE refuses all of them in a
// cluster that the stack creates, because a Service could intercept the traffic of another
// one (CVE-2020-8554). The API server refuses addresses that no other machine can reach
// (ValidateNonSpecialIP). The remedy is another way to expose the Service.
func checkExternalIPs(p *check.Problems, path *field.Path, addresses []string, context Context, remedy string) {
	if len(addresses) > 0 && !context.Storage.Existing {
		p.Invalid(path, addresses, "is only for an existing cluster, because GKE refuses external addresses of Services in a cluster that the stack creates; remove it, and %s", remedy)
		return
	}
	for i, address := range addresses {
		checkAddress(p, path.Index(i), address)
		if ip := net.ParseIP(address); ip.IsUnspecified() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() {
			p.Invalid(path.Index(i), address, "must not be an unspecified, loopback, or link-local address; write one that leads to a node")
		}
	}
	check.Once(p, path, addresses, "write each address once")
}

func checkAddress(p *check.Problems, path *field.Path, address string) {
	if net.ParseIP(address) == nil {
		p.Invalid(path, address, "must be an address like 10.0.0.2")
	}
}

func checkService(p *check.Problems, path *field.Path, s Service, context Context) {
	check.Port(p, path.Child("port"), s.Port)
	checkExternalIPs(p, path.Child("externalIPs"), s.ExternalIPs, context, "write type: LoadBalancer, or an ingress")
	check.Annotations(p, path.Child("annotations"), s.Annotations)
	switch at := path.Child("nodePort"); {
	case s.NodePort == 0:
	case s.Type == corev1.ServiceTypeClusterIP:
		p.Invalid(at, s.NodePort, "applies only to the types NodePort and LoadBalancer, but type is %s; remove it, or change type", s.Type)
	default:
		check.Range(p, at, s.NodePort, 30000, 32767, "; omit it to let Kubernetes choose one")
	}
	if s.ClusterIP != "" {
		checkAddress(p, path.Child("clusterIP"), s.ClusterIP)
	}
	checkLoadBalancer(p, path, s)
}

func checkLoadBalancer(p *check.Problems, path *field.Path, s Service) {
	ip, ranges := path.Child("loadBalancerIP"), path.Child("loadBalancerSourceRanges")
	if s.Type != corev1.ServiceTypeLoadBalancer {
		const other = "applies only to the type LoadBalancer, but type is %s; remove it, or change type"
		if s.LoadBalancerIP != "" {
			p.Invalid(ip, s.LoadBalancerIP, other, s.Type)
		}
		if len(s.LoadBalancerSourceRanges) > 0 {
			p.Invalid(ranges, s.LoadBalancerSourceRanges, other, s.Type)
		}
		return
	}
	if s.LoadBalancerIP != "" {
		checkAddress(p, ip, s.LoadBalancerIP)
		if address := net.ParseIP(s.LoadBalancerIP); address.IsPrivate() && !s.internal() {
			p.Invalid(ip, s.LoadBalancerIP, "is a private address, which only an internal load balancer can have; write a reserved external address, omit it, or give the service the annotation %s: Internal", internalAnnotations[0])
		}
	}
	if len(s.LoadBalancerSourceRanges) == 0 && !s.internal() {
		p.Required(ranges, "write the networks of PEDL's users, like 203.0.113.0/24, because a load balancer admits everyone by default, and anyone who can reach the master can run containers on the nodes of its agents; or give the service the annotation %s: Internal", internalAnnotations[0])
	}
	for i, text := range s.LoadBalancerSourceRanges {
		if r, err := netip.ParsePrefix(text); err != nil {
			p.Invalid(ranges.Index(i), text, "must be a network in CIDR notation, like 203.0.113.0/24")
		} else if r.Addr().IsPrivate() && !s.internal() {
			p.Warn(ranges.Index(i), "%s is private, and nobody comes to an external load balancer from there; write the public range of PEDL's users, or give the service the annotation %s: Internal", text, internalAnnotations[0])
		}
	}
}

// internalAnnotations make a load balancer of GKE internal: the current annotation, and the
// one of older releases.
var internalAnnotations = []string{"networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type"}

// internal reports whether only the cluster's network can reach the load balancer.
func (s Service) internal() bool {
	return slices.ContainsFunc(internalAnnotations, func(name string) bool { return s.Annotations[name] == "Internal" })
}

func checkIngress(p *check.Problems, path *field.Path, in Ingress) {
	if !in.Enabled {
		for _, given := range []struct {
			field string
			given bool
		}{{"annotations", len(in.Annotations) > 0}, {"hosts", len(in.Hosts) > 0}, {"tls", len(in.TLS) > 0}} {
			if given.given {
				p.Forbidden(path.Child(given.field), "enabled is false; write enabled: true, or remove it")
			}
		}
		return
	}
	check.Annotations(p, path.Child("annotations"), in.Annotations)
	for i, host := range in.Hosts {
		if net.ParseIP(host) != nil {
			p.Invalid(path.Child("hosts").Index(i), host, "is an IP address, but an ingress routes by host name; write a name like pedl.example.com, or remove hosts to admit all")
			continue
		}
		checkIngressHost(p, path.Child("hosts").Index(i), host)
	}
	check.Once(p, path.Child("hosts"), in.Hosts, "write each host once")
	for i, certificate := range in.TLS {
		at := path.Child("tls").Index(i)
		p.Name(at.Child("secretName"), certificate.SecretName, validation.IsDNS1123Subdomain)
		for j, host := range certificate.Hosts {
			checkIngressHost(p, at.Child("hosts").Index(j), host)
		}
	}
}

func checkIngressHost(p *check.Problems, path *field.Path, host string) {
	if len(validation.IsDNS1123Subdomain(host)) > 0 && len(validation.IsWildcardDNS1123Subdomain(host)) > 0 {
		p.Invalid(path, host, "must be a name like pedl.example.com, in lower case")
	}
}
