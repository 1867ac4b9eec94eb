package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/compute"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// The names of the subnetwork's secondary ranges.
const (
	podRange     = "pods"
	serviceRange = "services"
)

type network struct {
	network    *compute.Network
	subnetwork *compute.Subnetwork
	nat        *compute.RouterNat
}

// newNetwork registers a network of the cluster's own, whose nodes have no
// public address and reach the internet through NAT.
func newNetwork(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (*network, error) {
	project := pulumi.String(args.Project)
	region := pulumi.String(args.Cluster.Region)
	ranges := args.Cluster.Network

	vpc, err := compute.NewNetwork(ctx, name, &compute.NetworkArgs{
		Project:               project,
		Name:                  pulumi.String(args.Cluster.Name),
		AutoCreateSubnetworks: pulumi.Bool(false),
	}, child)
	if err != nil {
		return nil, err
	}
	subnetwork, err := compute.NewSubnetwork(ctx, name, &compute.SubnetworkArgs{
		Project:               project,
		Region:                region,
		Name:                  pulumi.String(args.Cluster.Name),
		Network:               vpc.ID(),
		IpCidrRange:           pulumi.String(ranges.Nodes),
		PrivateIpGoogleAccess: pulumi.Bool(true),
		SecondaryIpRanges: compute.SubnetworkSecondaryIpRangeArray{
			compute.SubnetworkSecondaryIpRangeArgs{
				RangeName:   pulumi.String(podRange),
				IpCidrRange: pulumi.String(ranges.Pods),
			},
			compute.SubnetworkSecondaryIpRangeArgs{
				RangeName:   pulumi.String(serviceRange),
				IpCidrRange: pulumi.String(ranges.Services),
			},
		},
	}, child)
	if err != nil {
		return nil, err
	}
	router, err := compute.NewRouter(ctx, name, &compute.RouterArgs{
		Project: project,
		Region:  region,
		Name:    pulumi.String(args.Cluster.Name),
		Network: vpc.ID(),
	}, child)
	if err != nil {
		return nil, err
	}
	nat, err := compute.NewRouterNat(ctx, name, &compute.RouterNatArgs{
		Project:                       project,
		Region:                        region,
		Name:                          pulumi.String(args.Cluster.Name),
		Router:                        router.Name,
		NatIpAllocateOption:           pulumi.String("AUTO_ONLY"),
		SourceSubnetworkIpRangesToNat: pulumi.String("ALL_SUBNETWORKS_ALL_IP_RANGES"),
		LogConfig: compute.RouterNatLogConfigArgs{
			Enable: pulumi.Bool(true),
			Filter: pulumi.String("ERRORS_ONLY"),
		},
	}, child)
	if err != nil {
		return nil, err
	}
	return &network{network: vpc, subnetwork: subnetwork, nat: nat}, nil
}
