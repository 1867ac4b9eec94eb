package gke

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/compute"
)

// The names of the subnetwork's secondary ranges.
const (
	podRange     = "pods"
	serviceRange = "services"
)

type network struct {
	// nat takes the nodes to the internet.
	network, subnetwork, nat *compute.Resource
}

// NetworkID identifies the network of a cluster.
func NetworkID(project, cluster string) string {
	return fmt.Sprintf("projects/%s/global/networks/%s", project, cluster)
}

// newNetwork registers a network of the cluster's own, with a subnetwork and what private nodes reach the
// internet through.
func newNetwork(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (made network, err error) {
	register := func(kind string, inputs pulumi.Map, opts ...pulumi.ResourceOption) *compute.Resource {
		made := &compute.Resource{}
		if err == nil {
			inputs["project"], inputs["name"] = pulumi.String(args.Project), pulumi.String(args.Cluster.Name)
			made, err = compute.Register(ctx, kind, name, inputs, opts...)
		}
		return made
	}
	opts := []pulumi.ResourceOption{child, pulumi.RetainOnDelete(args.KeepNetwork)}
	if args.AdoptNetwork {
		opts = append(opts, pulumi.Import(pulumi.ID(NetworkID(args.Project, args.Cluster.Name))))
	}
	made.network = register("network", pulumi.Map{"autoCreateSubnetworks": pulumi.Bool(false)}, opts...)
	ranges, region := args.Cluster.Network, pulumi.String(args.Cluster.Region)
	made.subnetwork = register("subnetwork", pulumi.Map{
		"region":                region,
		"network":               made.network.ID(),
		"ipCidrRange":           pulumi.String(ranges.Nodes),
		"privateIpGoogleAccess": pulumi.Bool(true),
		"secondaryIpRanges": pulumi.Array{
			pulumi.Map{"rangeName": pulumi.String(podRange), "ipCidrRange": pulumi.String(ranges.Pods)},
			pulumi.Map{"rangeName": pulumi.String(serviceRange), "ipCidrRange": pulumi.String(ranges.Services)},
		},
	}, child)
	router := register("router", pulumi.Map{"region": region, "network": made.network.ID()}, child)
	made.nat = register("routerNat", pulumi.Map{
		"region":                        region,
		"router":                        router.Name,
		"natIpAllocateOption":           pulumi.String("AUTO_ONLY"),
		"sourceSubnetworkIpRangesToNat": pulumi.String("ALL_SUBNETWORKS_ALL_IP_RANGES"),
		"logConfig":                     pulumi.Map{"enable": pulumi.Bool(true), "filter": pulumi.String("ERRORS_ONLY")},
	}, child)
	return made, err
}
