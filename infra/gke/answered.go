package gke

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// answered names the blocks of a cluster that GKE reports in other words than the provider
// takes, although the cluster already does what the stack file asks for. The program leaves
// these blocks out of the inputs: they are optional and computed, so the provider plans no
// change. Ignoring changes instead would put GKE's words, which a refresh has read, into the
// inputs, and pulumi-gcp 7.38 refuses them. The DNS block is not computed: it is left out while
// the cluster reports none, as a cluster with kube-dns that was created without the block does.
type answered struct {
	secrets, dns, datapath, diskDriver bool
	// none is true if there is no cluster yet.
	none bool
}

// readAnswered looks the cluster up, but only if one of the blocks is at stake. Leaving the
// blocks out without looking would drop edits: a key that is added later would encrypt nothing.
func readAnswered(ctx *pulumi.Context, args Args, component pulumi.InvokeOption) (answered, error) {
	cluster := args.Cluster
	if cluster.Encryption.Secrets == "" && cluster.DNS != kubeDNS && datapath(cluster) != legacyDatapath && cluster.CSIDrivers.PersistentDisk {
		return answered{}, nil
	}
	found, err := container.LookupCluster(ctx, &container.LookupClusterArgs{
		Project:  &args.Project,
		Location: &cluster.Region,
		Name:     cluster.Name,
	}, component)
	if err != nil {
		if strings.Contains(err.Error(), "/"+cluster.Name+" not found") {
			return answered{dns: cluster.DNS == kubeDNS, none: true}, nil
		}
		return answered{}, fmt.Errorf("look for the cluster %s: %w", cluster.Name, err)
	}
	has := answered{
		secrets:    encryptsAll(found, cluster.Encryption.Secrets),
		dns:        cluster.DNS == kubeDNS && len(found.DnsConfigs) == 0,
		datapath:   datapath(cluster) == legacyDatapath && found.DatapathProvider != advancedDatapath,
		diskDriver: !cluster.CSIDrivers.PersistentDisk && drivesDisks(found) && args.LastOutputs[diskDriverOutput] != nil,
	}
	if has.diskDriver {
		err = ctx.Log.Warn("persia:cluster.csiDrivers.persistentDisk: GKE has made the cluster with this driver, although it is false, and the driver stays. "+
			"To turn it off, set it to true and run `pulumi up`, and do so again with false", nil)
	}
	return has, err
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

// diskDriverOutput is an output which records that the last update asked for a cluster without the
// driver of Compute Engine's disks. GKE creates every cluster with the driver and turns it off only
// in an update. With this output the program distinguishes a new cluster, whose driver stays, from
// one whose driver an update turns off.
const diskDriverOutput = "persistentDiskDriver"

// Asked returns the outputs that the next update reads.
func Asked(cluster config.Cluster) pulumi.Map {
	if cluster.Existing != nil || cluster.CSIDrivers.PersistentDisk {
		return nil
	}
	return pulumi.Map{diskDriverOutput: pulumi.String("off")}
}

// encryptsAll reports whether the cluster encrypts Secrets with a key. Since 1.35, GKE answers
// ENCRYPTED with ALL_OBJECTS_ENCRYPTION_ENABLED, which pulumi-gcp 7.38 refuses as an input.
func encryptsAll(found *container.LookupClusterResult, key string) bool {
	for _, encryption := range found.DatabaseEncryptions {
		if key != "" && encryption.KeyName == key && encryption.State == "ALL_OBJECTS_ENCRYPTION_ENABLED" {
			return true
		}
	}
	return false
}
