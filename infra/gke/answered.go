package gke

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// answeredOtherwise are the inputs of the cluster that GKE answers in other words
// than the provider takes, as far as the cluster has what is asked for. Without this,
// every plan would change them, and one of them would replace the cluster.
//
// To ignore them always would drop edits: a key that is added later would not encrypt
// anything. So the cluster is asked, but only where one of them is at stake.
func answeredOtherwise(ctx *pulumi.Context, args Args) ([]string, error) {
	cluster := args.Cluster
	if cluster.Encryption.Secrets == "" && cluster.DNS != kubeDNS && datapath(cluster) != legacyDatapath {
		return nil, nil
	}
	found, err := container.LookupCluster(ctx, &container.LookupClusterArgs{
		Project:  &args.Project,
		Location: &cluster.Region,
		Name:     cluster.Name,
	})
	if err != nil {
		if strings.Contains(err.Error(), "/"+cluster.Name+" not found") {
			return nil, nil
		}
		return nil, fmt.Errorf("look for the cluster %s: %w", cluster.Name, err)
	}
	var ignored []string
	if encryptsAll(found, cluster.Encryption.Secrets) {
		ignored = append(ignored, "databaseEncryption.state")
	}
	if cluster.DNS == kubeDNS && !namesDNS(found) {
		ignored = append(ignored, "dnsConfig")
	}
	if datapath(cluster) == legacyDatapath && found.DatapathProvider != advancedDatapath {
		ignored = append(ignored, "datapathProvider")
	}
	return ignored, nil
}

// encryptsAll reports whether Secrets are encrypted with a key. GKE answers ENCRYPTED
// with ALL_OBJECTS_ENCRYPTION_ENABLED since 1.35, which the provider takes from 7.30 on.
func encryptsAll(found *container.LookupClusterResult, key string) bool {
	for _, encryption := range found.DatabaseEncryptions {
		if key != "" && encryption.KeyName == key && encryption.State == "ALL_OBJECTS_ENCRYPTION_ENABLED" {
			return true
		}
	}
	return false
}

// namesDNS reports whether the cluster names its DNS. kube-dns is not named.
func namesDNS(found *container.LookupClusterResult) bool {
	for _, dns := range found.DnsConfigs {
		if dns.ClusterDns == cloudDNS {
			return true
		}
	}
	return false
}
