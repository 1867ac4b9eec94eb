package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/gcp"
)

// workloadIdentity is turned off by an empty block.
func workloadIdentity(args Args) container.ClusterWorkloadIdentityConfigArgs {
	if !args.Cluster.WorkloadIdentity {
		return container.ClusterWorkloadIdentityConfigArgs{}
	}
	return container.ClusterWorkloadIdentityConfigArgs{
		WorkloadPool: pulumi.String(gcp.WorkloadPool(args.Project)),
	}
}

func binaryAuthorization(cluster config.Cluster) container.ClusterBinaryAuthorizationArgs {
	mode := "DISABLED"
	if cluster.BinaryAuthorization {
		mode = "PROJECT_SINGLETON_POLICY_ENFORCE"
	}
	return container.ClusterBinaryAuthorizationArgs{EvaluationMode: pulumi.String(mode)}
}

// securityPosture leaves out the scan of images for vulnerabilities, which costs
// extra.
func securityPosture(cluster config.Cluster) container.ClusterSecurityPostureConfigArgs {
	return container.ClusterSecurityPostureConfigArgs{
		Mode:              pulumi.String(cluster.SecurityPosture),
		VulnerabilityMode: pulumi.String("VULNERABILITY_DISABLED"),
	}
}
