package config

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/clusterspec"
	"persia/config/volumespec"
)

// warnOfServers warns of servers that the nodes and pods of a cluster that the stack creates
// may not reach, and everywhere of addresses that no server has. Others know the network of an
// existing cluster.
func (s *Stack) warnOfServers(p *check.Problems) {
	for _, v := range s.StoredVolumes() {
		switch source := v.Source().(type) {
		case *volumespec.NFS:
			s.warnOfServer(p, v.Path.Child("nfs", "server"), source.Server, true)
		case *volumespec.ISCSI:
			host, _ := source.Portal()
			s.warnOfServer(p, v.Path.Child("iscsi", "targetPortal"), host, true)
		case *volumespec.Filestore:
			check.WarnOfDocumentation(p, v.Path.Child("filestore", "ip"), source.IP, "write the address of the instance, or omit it")
			if source.Create == nil && s.Cluster.Existing == nil {
				p.Warn(v.Path.Child("filestore", "instance"), "%s must be in the network %s, which the stack creates: on the first `pulumi up`, no instance is; write create, or create the instance there before the jobs start", source.Instance, s.Cluster.Name)
			}
		}
	}
	for i := range s.Jobs {
		for k, v := range s.Jobs[i].Volumes {
			if v.NFS != nil {
				s.warnOfServer(p, s.Jobs[i].At().Child("volumes").Index(k).Child("nfs", "server"), v.NFS.Server, true)
			}
		}
	}
	if s.PEDL != nil && s.PEDL.Postgres.External != nil {
		s.warnOfServer(p, field.NewPath(pedlKey, "postgresql", "external", "host"), s.PEDL.Postgres.External.Host, false)
	}
}

// warnOfServer warns of a host that the nodes connect to, or else the pods.
func (s *Stack) warnOfServer(p *check.Problems, path *field.Path, host string, nodes bool) {
	address, err := netip.ParseAddr(host)
	in := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(address)
	}
	network := s.Cluster.Network
	switch {
	case check.WarnOfDocumentation(p, path, host, "write the address of the server"):
	case s.Cluster.Existing != nil:
	case err != nil && nodes && (strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".cluster.local")):
		p.Warn(path, "%s is a name of the cluster's own DNS, which the nodes, who mount the volume, may not resolve; write the address of the server", host)
	case err != nil:
	case in(network.Pods):
		p.Warn(path, "%s is in %s, the range of pods, whose addresses change; write the address of a server outside of the cluster", host, network.Pods)
	case in(network.ControlPlane):
		p.Warn(path, "%s is in %s, the range of the control plane, where no other server can be; write the address of the server", host, network.ControlPlane)
	case in(network.Services):
	case !clusterspec.Public(address):
		p.Warn(path, "%s must be in the network %s, which the stack creates, or in one that is connected to it: on the first `pulumi up`, none is; connect it before the jobs start", host, s.Cluster.Name)
	default:
		p.Warn(path, "%s is a public address, so the data crosses the internet without encryption, and each change of it is billed; write an address in a network that is connected to %s", host, s.Cluster.Name)
	}
}
