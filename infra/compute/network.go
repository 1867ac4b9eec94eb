package compute

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Network is a VPC network.
type Network struct {
	pulumi.CustomResourceState

	Name pulumi.StringOutput `pulumi:"name"`
}

// NetworkArgs are the inputs of a network.
type NetworkArgs struct {
	Project, Name         pulumi.StringInput
	AutoCreateSubnetworks pulumi.BoolInput
}

// NewNetwork registers a network.
func NewNetwork(ctx *pulumi.Context, name string, args *NetworkArgs, opts ...pulumi.ResourceOption) (*Network, error) {
	network := &Network{}
	return network, register(ctx, "gcp:compute/network:Network", name, pulumi.Map{
		"project":               args.Project,
		"name":                  args.Name,
		"autoCreateSubnetworks": args.AutoCreateSubnetworks,
	}, network, opts)
}

// NetworkExists reports whether a project has a network of a name.
func NetworkExists(ctx *pulumi.Context, project, name string, opts ...pulumi.InvokeOption) (bool, error) {
	var network struct {
		ID string `pulumi:"id"`
	}
	err := ctx.Invoke("gcp:compute/getNetwork:getNetwork", map[string]any{"project": project, "name": name}, &network, append(opts, pulumi.Version(version))...)
	if err != nil && strings.Contains(err.Error(), "/"+name+" not found") {
		return false, nil
	}
	return err == nil, err
}

// SubnetworkType is the type of a subnetwork in the state of a stack.
const SubnetworkType = "gcp:compute/subnetwork:Subnetwork"

// Subnetwork is a network's range of addresses in one region.
type Subnetwork struct {
	pulumi.CustomResourceState

	Name pulumi.StringOutput `pulumi:"name"`
}

// SubnetworkArgs are the inputs of a subnetwork. Network is the network's ID.
type SubnetworkArgs struct {
	Project, Region, Name, Network pulumi.StringInput
	// IpCidrRange is the primary range, in CIDR notation.
	IpCidrRange           pulumi.StringInput
	PrivateIpGoogleAccess pulumi.BoolInput
	SecondaryIpRanges     []SubnetworkSecondaryIpRange
}

// SubnetworkSecondaryIpRange is a further range, in CIDR notation.
type SubnetworkSecondaryIpRange struct{ RangeName, IpCidrRange pulumi.StringInput }

// NewSubnetwork registers a subnetwork.
func NewSubnetwork(ctx *pulumi.Context, name string, args *SubnetworkArgs, opts ...pulumi.ResourceOption) (*Subnetwork, error) {
	var ranges pulumi.Array
	for _, r := range args.SecondaryIpRanges {
		ranges = append(ranges, pulumi.Map{"rangeName": r.RangeName, "ipCidrRange": r.IpCidrRange})
	}
	subnetwork := &Subnetwork{}
	return subnetwork, register(ctx, SubnetworkType, name, pulumi.Map{
		"project":               args.Project,
		"region":                args.Region,
		"name":                  args.Name,
		"network":               args.Network,
		"ipCidrRange":           args.IpCidrRange,
		"privateIpGoogleAccess": args.PrivateIpGoogleAccess,
		"secondaryIpRanges":     ranges,
	}, subnetwork, opts)
}

// Router is a Cloud Router.
type Router struct {
	pulumi.CustomResourceState

	Name pulumi.StringOutput `pulumi:"name"`
}

// RouterArgs are the inputs of a router. Network is the network's ID.
type RouterArgs struct {
	Project, Region, Name, Network pulumi.StringInput
}

// NewRouter registers a router.
func NewRouter(ctx *pulumi.Context, name string, args *RouterArgs, opts ...pulumi.ResourceOption) (*Router, error) {
	router := &Router{}
	return router, register(ctx, "gcp:compute/router:Router", name, pulumi.Map{
		"project": args.Project,
		"region":  args.Region,
		"name":    args.Name,
		"network": args.Network,
	}, router, opts)
}

// RouterNat is Cloud NAT on a router.
type RouterNat struct{ pulumi.CustomResourceState }

// RouterNatArgs are the inputs of Cloud NAT. Router is the router's name.
type RouterNatArgs struct {
	Project, Region, Name, Router pulumi.StringInput
	// NatIpAllocateOption is AUTO_ONLY or MANUAL_ONLY.
	NatIpAllocateOption           pulumi.StringInput
	SourceSubnetworkIpRangesToNat pulumi.StringInput
	// LogFilter selects what Cloud NAT logs: ERRORS_ONLY, TRANSLATIONS_ONLY or ALL.
	LogFilter pulumi.StringInput
}

// NewRouterNat registers Cloud NAT, with its log.
func NewRouterNat(ctx *pulumi.Context, name string, args *RouterNatArgs, opts ...pulumi.ResourceOption) (*RouterNat, error) {
	nat := &RouterNat{}
	return nat, register(ctx, "gcp:compute/routerNat:RouterNat", name, pulumi.Map{
		"project":                       args.Project,
		"region":                        args.Region,
		"name":                          args.Name,
		"router":                        args.Router,
		"natIpAllocateOption":           args.NatIpAllocateOption,
		"sourceSubnetworkIpRangesToNat": args.SourceSubnetworkIpRangesToNat,
		"logConfig":                     pulumi.Map{"enable": pulumi.Bool(true), "filter": args.LogFilter},
	}, nat, opts)
}
