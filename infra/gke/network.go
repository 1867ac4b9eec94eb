package gke

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/compute"
)

// The names of the subnetwork's secondary ranges.
const (
	podRange     = "pods"
	serviceRange = "services"
)

type network struct {
	network    *compute.Network
	subnetwork *compute.Subnetwork
	// nat takes the nodes to the internet.
	nat *compute.RouterNat
}

// NetworkID identifies the network of a cluster.
func NetworkID(project, cluster string) string {
	return fmt.Sprintf("projects/%s/global/networks/%s", project, cluster)
}

// newNetwork registers a network of the cluster's own.
func newNetwork(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (*network, error) {
	opts := []pulumi.ResourceOption{child, pulumi.RetainOnDelete(args.KeepNetwork)}
	if args.AdoptNetwork {
		opts = append(opts, pulumi.Import(pulumi.ID(NetworkID(args.Project, args.Cluster.Name))))
	}
	vpc, err := compute.NewNetwork(ctx, name, &compute.NetworkArgs{
		Project:               pulumi.String(args.Project),
		Name:                  pulumi.String(args.Cluster.Name),
		AutoCreateSubnetworks: pulumi.Bool(false),
	}, opts...)
	if err != nil {
		return nil, err
	}
	subnetwork, err := newSubnetwork(ctx, name, args, vpc, child)
	if err != nil {
		return nil, err
	}
	nat, err := newNAT(ctx, name, args, vpc, child)
	return &network{network: vpc, subnetwork: subnetwork, nat: nat}, err
}

func newSubnetwork(ctx *pulumi.Context, name string, args Args, vpc *compute.Network, child pulumi.ResourceOption) (*compute.Subnetwork, error) {
	ranges := args.Cluster.Network
	return compute.NewSubnetwork(ctx, name, &compute.SubnetworkArgs{
		Project:               pulumi.String(args.Project),
		Region:                pulumi.String(args.Cluster.Region),
		Name:                  pulumi.String(args.Cluster.Name),
		Network:               vpc.ID(),
		IpCidrRange:           pulumi.String(ranges.Nodes),
		PrivateIpGoogleAccess: pulumi.Bool(true),
		SecondaryIpRanges: []compute.SubnetworkSecondaryIpRange{
			{RangeName: pulumi.String(podRange), IpCidrRange: pulumi.String(ranges.Pods)},
			{RangeName: pulumi.String(serviceRange), IpCidrRange: pulumi.String(ranges.Services)},
		},
	}, child)
}

// newNAT registers what private nodes reach the internet through.
func newNAT(ctx *pulumi.Context, name string, args Args, vpc *compute.Network, child pulumi.ResourceOption) (*compute.RouterNat, error) {
	router, err := compute.NewRouter(ctx, name, &compute.RouterArgs{
		Project: pulumi.String(args.Project),
		Region:  pulumi.String(args.Cluster.Region),
		Name:    pulumi.String(args.Cluster.Name),
		Network: vpc.ID(),
	}, child)
	if err != nil {
		return nil, err
	}
	return compute.NewRouterNat(ctx, name, &compute.RouterNatArgs{
		Project:                       pulumi.String(args.Project),
		Region:                        pulumi.String(args.Cluster.Region),
		Name:                          pulumi.String(args.Cluster.Name),
		Router:                        router.Name,
		NatIpAllocateOption:           pulumi.String("AUTO_ONLY"),
		SourceSubnetworkIpRangesToNat: pulumi.String("ALL_SUBNETWORKS_ALL_IP_RANGES"),
		LogFilter:                     pulumi.String("ERRORS_ONLY"),
	}, child)
}

func ipAllocation() container.ClusterIpAllocationPolicyArgs {
	return container.ClusterIpAllocationPolicyArgs{
		ClusterSecondaryRangeName:  pulumi.String(podRange),
		ServicesSecondaryRangeName: pulumi.String(serviceRange),
	}
}
