// Package gke creates a GKE cluster: its network, the identity of its nodes, the control plane, the node pools, and the
// Kubernetes provider that everything inside the cluster is registered with.
package gke

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/gcp"
	"persia/infra/iam"
	"persia/kube"
)

// Args describes a cluster.
type Args struct {
	Project   string
	Cluster   config.Cluster
	NodePools []config.Pool
	// NVIDIADriver decides what GPU pools ask of GKE.
	NVIDIADriver config.NVIDIADriver
	Images       config.Images
	// KeepNetwork lets the network outlive the stack, for the storage in it, and AdoptNetwork takes it over again.
	KeepNetwork, AdoptNetwork bool
	Keys                      *iam.Keys
	// Adopts registers an Adopter.
	Adopts bool
	// State are the outputs of the resources of the stack after its last update.
	State map[resource.URN]map[string]any
}

// Cluster is a GKE cluster with its node pools.
type Cluster struct {
	pulumi.ResourceState

	Name pulumi.StringOutput `pulumi:"name"`
	// Access is how to reach the cluster. It is nil for an existing cluster, whose user knows.
	*Access
	// ControlPlane is the cluster itself, without its pools. It is nil for an existing cluster.
	ControlPlane pulumi.CustomResource
	// Provider registers objects inside the cluster, after its node pools.
	Provider pulumi.ProviderResource
	// Adopter registers objects that may exist when the stack creates them: an earlier life of the stack left them on
	// purpose, the user made them for the stack, or Kubernetes makes them itself. Provider refuses to create what
	// exists. Adopter is nil unless [Args] or [UseCluster] ask for it.
	Adopter pulumi.ProviderResource
}

// registerProviders registers Provider, and Adopter if adopts is true.
func (c *Cluster) registerProviders(ctx *pulumi.Context, name string, adopts bool, args kubernetes.ProviderArgs,
	opts ...pulumi.ResourceOption) error {
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
	Endpoint pulumi.StringOutput `pulumi:"endpoint"`
	// Kubeconfig is the text of a kubeconfig file, a secret. It holds no
	// credential: kubectl gets one from gke-gcloud-auth-plugin.
	Kubeconfig pulumi.StringOutput `pulumi:"kubeconfig"`
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
	keys, err := newKeyGrants(ctx, args)
	if err != nil {
		return nil, err
	}
	// Nodes are encrypted, get their images and report through these.
	needs := slices.Concat(keys, identity.grants, caches, kube.Needs(network.nat))
	controlPlane, err := newControlPlane(ctx, name, args, network, identity, needs, child)
	if err != nil {
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
	return cluster, ctx.RegisterResourceOutputs(cluster, kube.Outputs(cluster))
}

// newControlPlane registers the cluster without a node pool of its own. It also names settings that
// are off, because the provider does not change settings that an input omits.
func newControlPlane(ctx *pulumi.Context, name string, args Args, network network, identity *nodeIdentity,
	needs []pulumi.CustomResource, child pulumi.ResourceOption) (*container.Cluster, error) {
	cluster := args.Cluster
	inputs := &container.ClusterArgs{
		Project:               pulumi.String(args.Project),
		Name:                  pulumi.String(cluster.Name),
		Location:              pulumi.String(cluster.Region),
		NodeLocations:         locations(cluster.Zones),
		DeletionProtection:    pulumi.Bool(cluster.DeletionProtection),
		RemoveDefaultNodePool: pulumi.Bool(true),
		InitialNodeCount:      pulumi.Int(1),
		// Without an identity, the pool that lives for minutes would have the project's default one, which has
		// too many rights, and disks that a policy of the project may require to be encrypted.
		NodeConfig: container.ClusterNodeConfigArgs{
			ServiceAccount: identity.email,
			OauthScopes:    nodeScopes(),
			BootDiskKmsKey: optional(cluster.Encryption.BootDisks),
		},

		ReleaseChannel:    container.ClusterReleaseChannelArgs{Channel: pulumi.String(cluster.ReleaseChannel)},
		MaintenancePolicy: maintenancePolicy(cluster.Maintenance),

		Network:    network.network.ID(),
		Subnetwork: network.subnetwork.ID(),
		IpAllocationPolicy: container.ClusterIpAllocationPolicyArgs{
			ClusterSecondaryRangeName:  pulumi.String(podRange),
			ServicesSecondaryRangeName: pulumi.String(serviceRange),
		},
		// Nodes have no public addresses.
		PrivateClusterConfig: container.ClusterPrivateClusterConfigArgs{
			EnablePrivateNodes:    pulumi.Bool(true),
			EnablePrivateEndpoint: pulumi.Bool(cluster.PrivateEndpoint),
			MasterIpv4CidrBlock:   pulumi.String(cluster.Network.ControlPlane),
		},
		MasterAuthorizedNetworksConfig: authorizedNetworks(cluster.AuthorizedNetworks),
		// GKE turns it on by itself from 1.36 on. Unsaid, it would be taken for turned off, which replaces the cluster.
		EnableL4IlbSubsetting:     pulumi.Bool(true),
		EnableIntranodeVisibility: pulumi.Bool(false),
		DatapathProvider:          pulumi.String("ADVANCED_DATAPATH"),
		// The domain is the default: GKE gives it back, and the provider would take it away again.
		DnsConfig: container.ClusterDnsConfigArgs{
			ClusterDns:       pulumi.String("CLOUD_DNS"),
			ClusterDnsScope:  pulumi.String("CLUSTER_SCOPE"),
			ClusterDnsDomain: pulumi.String("cluster.local"),
		},

		// A Service with an external address of its choosing could take the traffic of another (CVE-2020-8554).
		ServiceExternalIpsConfig: container.ClusterServiceExternalIpsConfigArgs{Enabled: pulumi.Bool(false)},

		WorkloadIdentityConfig: container.ClusterWorkloadIdentityConfigArgs{
			WorkloadPool: pulumi.String(gcp.WorkloadPool(args.Project)),
		},
		EnableShieldedNodes: pulumi.Bool(true),
		BinaryAuthorization: container.ClusterBinaryAuthorizationArgs{EvaluationMode: pulumi.String("PROJECT_SINGLETON_POLICY_ENFORCE")},
		// The scan of images for vulnerabilities costs extra.
		SecurityPostureConfig: container.ClusterSecurityPostureConfigArgs{
			Mode:              pulumi.String("BASIC"),
			VulnerabilityMode: pulumi.String("VULNERABILITY_DISABLED"),
		},

		// The profile applies to the stack's own pools. GKE creates no others.
		ClusterAutoscaling: container.ClusterClusterAutoscalingArgs{
			Enabled:            pulumi.Bool(false),
			AutoscalingProfile: pulumi.String("OPTIMIZE_UTILIZATION"),
		},
		AddonsConfig: container.ClusterAddonsConfigArgs{
			GcePersistentDiskCsiDriverConfig: container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs{Enabled: pulumi.Bool(true)},
			GcpFilestoreCsiDriverConfig:      container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs{Enabled: pulumi.Bool(true)},
			GcsFuseCsiDriverConfig:           container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs{Enabled: pulumi.Bool(true)},
			GkeBackupAgentConfig:             container.ClusterAddonsConfigGkeBackupAgentConfigArgs{Enabled: pulumi.Bool(true)},
		},

		LoggingConfig: container.ClusterLoggingConfigArgs{EnableComponents: components(cluster.Logging.Components, "logging")},
		MonitoringConfig: container.ClusterMonitoringConfigArgs{
			EnableComponents:  components(cluster.Monitoring.Components, "monitoring"),
			ManagedPrometheus: container.ClusterMonitoringConfigManagedPrometheusArgs{Enabled: pulumi.Bool(cluster.Monitoring.ManagedPrometheus)},
		},
		CostManagementConfig: container.ClusterCostManagementConfigArgs{Enabled: pulumi.Bool(true)},
	}
	switch cluster.Encryption.Secrets {
	case "":
		inputs.DatabaseEncryption = container.ClusterDatabaseEncryptionArgs{State: pulumi.String("DECRYPTED")}
	case encryptedWith(args): // left out
	default:
		inputs.DatabaseEncryption = container.ClusterDatabaseEncryptionArgs{
			State:   pulumi.String("ENCRYPTED"),
			KeyName: pulumi.String(cluster.Encryption.Secrets),
		}
	}
	return container.NewCluster(ctx, name, inputs,
		child,
		// Both describe the default pool, which is gone after creation.
		pulumi.IgnoreChanges([]string{"nodeConfig", "initialNodeCount"}),
		// GKE would refuse too, but only after everything inside is gone.
		pulumi.Protect(cluster.DeletionProtection),
		pulumi.Timeouts(&pulumi.CustomTimeouts{Create: "60m", Update: "120m", Delete: "60m"}),
		kube.After(needs))
}

// clusterIdentifier returns an identifier that stays the same for the life of a cluster, unlike its
// kubeconfig, which changes with its certificate. A cluster that replaces another has the same
// name, but none of its objects, so the identifier includes the settings that force a replacement.
func clusterIdentifier(args Args) string {
	cluster := args.Cluster
	return fmt.Sprintf("projects/%s/locations/%s/clusters/%s?datapath=ADVANCED_DATAPATH&privateNodes=true&controlPlane=%s",
		args.Project, cluster.Region, cluster.Name, cluster.Network.ControlPlane)
}

// encryptedWith returns the key that encrypts the Secrets of the cluster in the state, or "". It looks at what
// replaces a cluster itself: a first update that failed has left no provider that identifies the cluster.
// Since 1.35, GKE answers ENCRYPTED with ALL_OBJECTS_ENCRYPTION_ENABLED, which pulumi-gcp 7.38 refuses as an
// input. The block is optional and computed: the program leaves it out of the inputs of a cluster that has the
// key, and the provider plans no change.
func encryptedWith(args Args) string {
	cluster := inState("gcp:container/cluster:Cluster", args.Project, args.Cluster, args.State)
	private, _ := cluster["privateClusterConfig"].(map[string]any)
	has, _ := cluster["databaseEncryption"].(map[string]any)
	if private["masterIpv4CidrBlock"] != args.Cluster.Network.ControlPlane || has["state"] != "ALL_OBJECTS_ENCRYPTION_ENABLED" {
		return ""
	}
	key, _ := has["keyName"].(string)
	return key
}

// setsBack lets an update reset a field that another client, such as kubectl scale, has written.
// Without it, the provider refuses the update.
const setsBack = pulumi.Bool(true)

// UseCluster registers a component for an existing cluster, with an Adopter if adopts is true. It
// registers no resource in Google Cloud. The user of Pulumi needs rights in the cluster.
func UseCluster(ctx *pulumi.Context, name string, existing config.ExistingCluster, adopts bool,
	opts ...pulumi.ResourceOption) (*Cluster, error) {
	cluster := &Cluster{}
	if err := ctx.RegisterComponentResource("persia:gke:ExistingCluster", name, cluster, opts...); err != nil {
		return nil, err
	}
	cluster.Name = pulumi.String(name).ToStringOutput()
	args := kubernetes.ProviderArgs{
		// The same cluster by another path or context is the same.
		ClusterIdentifier: pulumi.String(name),
		EnablePatchForce:  setsBack,
	}
	// The path and not the text, which may hold a credential.
	if existing.Kubeconfig != "" {
		args.Kubeconfig = pulumi.String(existing.Kubeconfig)
	}
	if existing.Context != "" {
		args.Context = pulumi.String(existing.Context)
	}
	if err := cluster.registerProviders(ctx, name, adopts, args, pulumi.Parent(cluster)); err != nil {
		return nil, err
	}
	return cluster, ctx.RegisterResourceOutputs(cluster, kube.Outputs(cluster))
}
