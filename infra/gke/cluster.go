package gke

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/iam"
)

// Args describes a cluster.
type Args struct {
	// Project is the Google Cloud project.
	Project   string
	Cluster   config.Cluster
	NodePools []config.Pool
	// NVIDIADriver decides what GPU pools ask of GKE.
	NVIDIADriver config.NVIDIADriver
	// Images says where nodes pull images from.
	Images config.Images
	// KeepNetwork lets the network outlive the stack, for the storage in it, and AdoptNetwork
	// takes it over again.
	KeepNetwork, AdoptNetwork bool
	// Keys grants Google's services the use of keys.
	Keys *iam.Keys
	// Adopts registers an Adopter.
	Adopts bool
	// LastOutputs are the stack's outputs after its last successful update.
	LastOutputs map[string]any
}

// Cluster is a GKE cluster with its node pools.
type Cluster struct {
	pulumi.ResourceState

	Name pulumi.StringOutput `pulumi:"name"`
	// Access is how to reach the cluster. It is nil for an existing cluster, whose user knows.
	Access *Access
	// ControlPlane is the cluster itself, without its pools. It is nil for an existing cluster.
	ControlPlane pulumi.CustomResource
	// Provider registers objects inside the cluster, after its node pools.
	Provider pulumi.ProviderResource
	// Adopter registers objects that may exist when the stack creates them: an earlier life of
	// the stack left them on purpose, the user made them for the stack, or Kubernetes makes them
	// itself. Provider refuses to create what exists. Adopter is nil unless [Args] or [UseCluster]
	// ask for it.
	Adopter pulumi.ProviderResource
}

// registerProviders registers Provider, and Adopter if adopts is true.
func (c *Cluster) registerProviders(ctx *pulumi.Context, name string, adopts bool, args kubernetes.ProviderArgs, opts ...pulumi.ResourceOption) error {
	provider, err := kubernetes.NewProvider(ctx, name, &args, opts...)
	if err != nil {
		return err
	}
	c.Provider = provider
	if !adopts {
		return nil
	}
	args.UpsertExistingObjects = pulumi.Bool(true)
	adopter, err := kubernetes.NewProvider(ctx, name+"-adopter", &args, opts...)
	c.Adopter = adopter
	return err
}

// Access is how a cluster is reached.
type Access struct {
	// Endpoint is the control plane's address.
	Endpoint pulumi.StringOutput
	// Kubeconfig is the text of a kubeconfig file, a secret. It holds no
	// credential: kubectl gets one from gke-gcloud-auth-plugin.
	Kubeconfig pulumi.StringOutput
}

// NewCluster registers a cluster, its network, identity and node pools.
func NewCluster(ctx *pulumi.Context, name string, args Args, opts ...pulumi.ResourceOption) (*Cluster, error) {
	cluster := &Cluster{}
	if err := ctx.RegisterComponentResource("persia:gke:Cluster", name, cluster, opts...); err != nil {
		return nil, err
	}
	child := pulumi.Parent(cluster)

	network, err := newNetwork(ctx, name, args, child)
	if err != nil {
		return nil, err
	}
	identity, err := newNodeIdentity(ctx, name, args, child)
	if err != nil {
		return nil, err
	}
	caches, err := newImageCaches(ctx, name, args, identity, child)
	if err != nil {
		return nil, err
	}
	keys, err := newKeyGrants(ctx, name, args, cluster)
	if err != nil {
		return nil, err
	}
	// Nodes are encrypted, get their images and report through these.
	needs := slices.Concat(keys, identity.grants, caches, network.egress)
	controlPlane, err := newControlPlane(ctx, name, args, network, identity, needs, child)
	if err != nil {
		return nil, err
	}
	if err := newBackupPlan(ctx, name, args, controlPlane, child); err != nil {
		return nil, err
	}
	pools, err := newNodePools(ctx, name, args, controlPlane, identity, child)
	if err != nil {
		return nil, err
	}

	cluster.Name, cluster.ControlPlane = controlPlane.Name, controlPlane
	cluster.Access = &Access{Endpoint: controlPlane.Endpoint, Kubeconfig: kubeconfig(controlPlane, byLogin)}
	err = cluster.registerProviders(ctx, name, args.Adopts, kubernetes.ProviderArgs{
		Kubeconfig:        kubeconfig(controlPlane, byDefaultCredentials),
		ClusterIdentifier: pulumi.String(clusterIdentifier(args)),
		EnablePatchForce:  setsBack,
	}, child, pulumi.DependsOn(pools))
	if err != nil {
		return nil, err
	}
	return cluster, ctx.RegisterResourceOutputs(cluster, pulumi.Map{
		"name":       cluster.Name,
		"endpoint":   cluster.Access.Endpoint,
		"kubeconfig": cluster.Access.Kubeconfig,
	})
}

// newControlPlane registers the cluster without a node pool of its own. It also names settings that
// are off, because the provider does not change settings that an input omits.
func newControlPlane(ctx *pulumi.Context, name string, args Args, network *network, identity *nodeIdentity, needs []pulumi.Resource, child pulumi.ResourceOrInvokeOption) (*container.Cluster, error) {
	cluster := args.Cluster
	has, err := readAnswered(ctx, args, child)
	if err != nil {
		return nil, err
	}
	inputs := &container.ClusterArgs{
		Project:               pulumi.String(args.Project),
		Name:                  pulumi.String(cluster.Name),
		Location:              pulumi.String(cluster.Region),
		NodeLocations:         locations(cluster.Zones),
		DeletionProtection:    pulumi.Bool(cluster.DeletionProtection),
		RemoveDefaultNodePool: pulumi.Bool(true),
		InitialNodeCount:      pulumi.Int(1),
		NodeConfig:            defaultPool(cluster, identity),

		ReleaseChannel:    container.ClusterReleaseChannelArgs{Channel: pulumi.String(cluster.ReleaseChannel)},
		MaintenancePolicy: maintenancePolicy(cluster.Maintenance),

		Network:                        network.network.ID(),
		Subnetwork:                     network.subnetwork.ID(),
		IpAllocationPolicy:             ipAllocation(),
		PrivateClusterConfig:           privateCluster(cluster),
		MasterAuthorizedNetworksConfig: authorizedNetworks(cluster.AuthorizedNetworks),
		// GKE turns it on by itself from 1.36 on. Unsaid, it would be taken for turned
		// off, which replaces the cluster.
		EnableL4IlbSubsetting:     pulumi.Bool(true),
		EnableIntranodeVisibility: pulumi.Bool(cluster.Network.IntranodeVisibility),

		// A Service with an external address of its choosing could take the traffic of
		// another (CVE-2020-8554).
		ServiceExternalIpsConfig: container.ClusterServiceExternalIpsConfigArgs{Enabled: pulumi.Bool(false)},

		WorkloadIdentityConfig: workloadIdentity(args),
		EnableShieldedNodes:    pulumi.Bool(cluster.ShieldedNodes),
		BinaryAuthorization:    binaryAuthorization(cluster),
		SecurityPostureConfig:  securityPosture(cluster),

		ClusterAutoscaling: autoscalingProfile(cluster),
		AddonsConfig:       addons(cluster, has),

		LoggingConfig:        loggingConfig(cluster.Logging),
		MonitoringConfig:     monitoringConfig(cluster.Monitoring),
		CostManagementConfig: container.ClusterCostManagementConfigArgs{Enabled: pulumi.Bool(cluster.CostManagement)},
	}
	if !has.datapath {
		inputs.DatapathProvider = pulumi.String(datapath(cluster))
	}
	if !has.dns {
		inputs.DnsConfig = dns(cluster)
	}
	if !has.secrets {
		inputs.DatabaseEncryption = secretEncryption(cluster.Encryption)
	}
	// Both describe the default pool, which is gone after creation.
	ignored := []string{"nodeConfig", "initialNodeCount"}
	if has.none {
		// A refresh after the creation would report GKE's words as changes. The next update leaves
		// these fields out, or sets them.
		ignored = append(ignored, "databaseEncryption.state", "datapathProvider", "addonsConfig.gcePersistentDiskCsiDriverConfig.enabled")
	}
	return container.NewCluster(ctx, name, inputs,
		child,
		pulumi.IgnoreChanges(ignored),
		// GKE would refuse too, but only after everything inside is gone.
		pulumi.Protect(cluster.DeletionProtection),
		pulumi.Timeouts(&pulumi.CustomTimeouts{Create: "60m", Update: "120m", Delete: "60m"}),
		pulumi.DependsOn(needs))
}

// defaultPool returns the node pool that GKE creates with the cluster, which lives for minutes.
// Without an identity it would have the project's default one, which has too many rights, and disks
// that a policy of the project may require to be encrypted.
func defaultPool(cluster config.Cluster, identity *nodeIdentity) container.ClusterNodeConfigArgs {
	return container.ClusterNodeConfigArgs{
		ServiceAccount: identity.email,
		OauthScopes:    nodeScopes(),
		BootDiskKmsKey: optional(cluster.Encryption.BootDisks),
	}
}

// clusterIdentifier returns an identifier that stays the same for the life of a cluster, unlike its
// kubeconfig, which changes with its certificate. A cluster that replaces another has the same
// name, but none of its objects, so the identifier includes the settings that force a replacement.
func clusterIdentifier(args Args) string {
	cluster := args.Cluster
	return fmt.Sprintf("projects/%s/locations/%s/clusters/%s?datapath=%s&privateNodes=%t&controlPlane=%s",
		args.Project, cluster.Region, cluster.Name, datapath(cluster), cluster.PrivateNodes, cluster.Network.ControlPlane)
}
