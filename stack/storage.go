package stack

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/compute"
	"persia/infra/gke"
	"persia/infra/iam"
	"persia/infra/storage"
	"persia/workload/persia"
)

// storedData is the data of a stack as found before the program registers anything.
type storedData struct {
	storage.Cloud
	// found is the storage of each volume in Google Cloud.
	found map[string]storage.Found
	// pairs are the pairs of volumes in the state of the stack.
	pairs map[string]storage.Pair
	// network reports that the network that outlives the stack exists.
	network bool
	keys    *iam.Keys
}

// lookUp looks up the storage of all volumes, and compares it with the last update. It refuses to delete data.
func (d *deployment) lookUp() error {
	cfg, volumes := d.cfg, d.cfg.StoredVolumes()
	cloud := storage.Cloud{Existing: cfg.Cluster.Existing != nil, Project: cfg.Project, Network: gke.NetworkID(cfg.Project, cfg.Cluster.Name),
		Owner: d.before.ID.Label(), Provider: d.google}
	found, err := storage.Find(d.ctx, cloud, volumes)
	if err != nil {
		return err
	}
	pairs, previous := storage.Pairs(d.before.Resources), storage.Previous(d.before.Resources)
	written := slices.DeleteFunc(slices.Clone(volumes), func(v config.StoredVolume) bool { return !cfg.JobsWrite(v.Name) })
	if err := d.warn(slices.Concat(storage.Shared(pairs, written), storage.Imported(cloud, previous, found, volumes))...); err != nil {
		return err
	}
	if err := storage.CheckPairs(pairs, volumes); err != nil {
		return err
	}
	if err := storage.Deleted(d.ctx, cloud, previous, volumes); err != nil {
		return err
	}
	network, err := d.hasNetwork()
	d.data = &storedData{cloud, found, pairs, network, iam.NewKeys("keys", cfg.Project, pulumi.Provider(d.google))}
	return err
}

// inGoogle has components register resources of Google Cloud with the stack's provider.
func (d *deployment) inGoogle() pulumi.ResourceOption {
	if d.google == nil {
		return pulumi.Composite()
	}
	return pulumi.Providers(d.google)
}

// keepsNetwork reports whether destroy keeps a Filestore instance, and with it the network: without the network nothing
// reaches the instance, and Google deletes no network with an instance in it.
func keepsNetwork(cfg *config.Stack) bool {
	return slices.ContainsFunc(cfg.StoredVolumes(), func(v config.StoredVolume) bool {
		return inNetwork(v) && !v.DeletesData()
	})
}

// hasNetwork reports whether the network of an earlier life of the stack exists. Destroy keeps it even if the stack had
// not created the instance yet.
func (d *deployment) hasNetwork() (bool, error) {
	cfg := d.cfg
	if cfg.Cluster.Existing != nil || !slices.ContainsFunc(cfg.StoredVolumes(), inNetwork) {
		return false, nil
	}
	exists, err := compute.LookUp(d.ctx, "network", map[string]any{"project": cfg.Project, "name": cfg.Cluster.Name}, &struct{}{}, d.google)
	if err != nil {
		return false, fmt.Errorf("look for the network %s: %w", cfg.Cluster.Name, err)
	}
	return exists, nil
}

// inNetwork reports whether the stack creates storage in its own network.
func inNetwork(v config.StoredVolume) bool { return v.Filestore != nil && v.Creates() }

// volumeArgs returns the arguments of a volume without the use that pods make of it.
func (d *storedData) volumeArgs(v config.Volume) storage.Args {
	return storage.Args{Cloud: d.Cloud, Volume: v, Found: d.found[v.Name], Pair: d.pairs[v.Name], Keys: d.keys}
}

// newVolumes registers the volumes of jobs, after needs.
func (d *deployment) newVolumes(needs []pulumi.CustomResource) {
	for _, v := range d.cfg.Storage {
		args := d.data.volumeArgs(v)
		args.Namespace, args.Contents, args.Needs = persia.NamespaceName, "checkpoints", needs
		d.volumes = append(d.volumes, storage.NewVolume(d.in, v.Name, args))
	}
}

// claims returns the claims of the volumes of jobs. Pods that mount the volumes come after them.
func (d *deployment) claims() []pulumi.CustomResource {
	var claims []pulumi.CustomResource
	for _, volume := range d.volumes {
		claims = append(claims, volume.Claim)
	}
	return claims
}
