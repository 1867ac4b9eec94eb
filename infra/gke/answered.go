package gke

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config/clusterspec"
	"persia/infra/lastupdate"
)

// answeredOtherwise are the inputs of the cluster that GKE answers in other words
// than the provider takes, as far as the cluster has what is asked for. Without this,
// every plan would change them, and one of them would replace the cluster.
//
// To ignore them always would drop edits: a key that is added later would not encrypt
// anything. So the cluster is asked, but only where one of them is at stake.
func answeredOtherwise(ctx *pulumi.Context, args Args) ([]string, error) {
	cluster := args.Cluster
	if cluster.Encryption.Secrets == "" && cluster.DNS != kubeDNS && datapath(cluster) != legacyDatapath && cluster.CSIDrivers.PersistentDisk {
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
	if !cluster.CSIDrivers.PersistentDisk && drivesDisks(found) {
		asked, err := askedOff(ctx)
		if err != nil {
			return nil, err
		}
		if asked {
			ignored = append(ignored, "addonsConfig.gcePersistentDiskCsiDriverConfig")
			err = ctx.Log.Warn("persia:cluster.csiDrivers.persistentDisk: GKE has made the cluster with this driver, although it is false, and the driver stays. "+
				"To turn it off, set it to true and run `pulumi up`, and do so again with false", nil)
		}
		return ignored, err
	}
	return ignored, nil
}

// drivesDisks reports whether the cluster has the driver of Compute Engine's disks.
func drivesDisks(found *container.LookupClusterResult) bool {
	for _, addons := range found.AddonsConfigs {
		for _, driver := range addons.GcePersistentDiskCsiDriverConfigs {
			if driver.Enabled {
				return true
			}
		}
	}
	return false
}

// diskDriverOutput is the output of a stack that says that the driver of Compute
// Engine's disks was asked to be off. GKE turns it on in every new cluster, whatever
// it is asked, and off at an update: only what the last update asked for tells a
// cluster that was made so from one in which the driver is now to be turned off.
const diskDriverOutput = "persistentDiskDriver"

func askedOff(ctx *pulumi.Context) (bool, error) {
	outputs, err := lastupdate.Outputs(ctx)
	return outputs[diskDriverOutput] != nil, err
}

// Asked are the outputs that the next update reads.
func Asked(cluster clusterspec.Cluster) pulumi.Map {
	if cluster.Existing != nil || cluster.CSIDrivers.PersistentDisk {
		return nil
	}
	return pulumi.Map{diskDriverOutput: pulumi.String("off")}
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
