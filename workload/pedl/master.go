// Package pedl is Determined AI's PEDL next to the training jobs: a master with its database in one namespace, and in
// another the agents, which have the Docker of their nodes start containers that Kubernetes does not see.
//
// Only customers have PEDL's images. The program relies on PEDL's public documents: the master reads a YAML file, and
// every option of an agent is an environment variable with the prefix PEDL_.
package pedl

import (
	_ "embed"
	"fmt"
	"net/netip"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/kube"
)

const masterName = "pedl-master"

//go:embed master.yaml
var masterManifest string

// Master is the master, up and connected.
type Master struct {
	// Server is the master itself.
	Server pulumi.CustomResource
	// URL is where it is reached inside of the cluster.
	URL string `pulumi:"url"`
	// ClusterIP is the address of its service.
	ClusterIP pulumi.Output
}

// NewMaster registers the master after its namespace and database, and the ways to it.
func NewMaster(r *kube.Registrar, name string, args Args, needs []pulumi.CustomResource) Master {
	master := Master{URL: fmt.Sprintf("http://%s.%s.svc:%d", masterName, NamespaceName, args.PEDL.Service.Port)}
	objects := r.Component("persia:pedl:Master", name)
	objects.Outputs = master
	of := args.master()
	policy := kube.Needs(objects.Add(name, of["NetworkPolicy"], needs))
	secret := objects.Add(name+"-config", of["Secret"], policy)
	master.Server = objects.AddWith(name, of["Deployment"], restartedBy(secret), kube.Needs(secret), kube.WorkloadTimeouts())
	service := objects.Add(name, of["Service"], policy)
	master.ClusterIP = service.Spec.MapIndex(pulumi.String("clusterIP"))
	if args.PEDL.Ingress.Enabled {
		objects.Add(name, of["Ingress"], kube.Needs(service))
	}
	return master
}

// master returns the objects of the master by their kinds.
func (a Args) master() map[string]runtime.Object {
	database, cidr, hosts := connectionOf(a.PEDL.Postgres), "", a.PEDL.Ingress.Hosts
	if address, err := netip.ParseAddr(database.Host); err == nil {
		cidr = fmt.Sprintf("%s/%d", database.Host, address.BitLen())
	}
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	return kube.ByKind(masterManifest, struct {
		Args
		CIDR              string // of an external database
		Configuration     []byte
		NodeSelector      map[string]string
		MasterTolerations []corev1.Toleration
		Hosts             []string
	}{
		a, cidr, masterConfig(database), labels.Merge(a.Placement.NodeSelector, a.PEDL.NodeSelector),
		slices.Concat(a.Placement.Tolerations, a.PEDL.Tolerations), hosts,
	})
}
