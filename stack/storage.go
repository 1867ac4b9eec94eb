package stack

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/before"
	"persia/infra/compute"
	"persia/infra/gke"
	"persia/infra/iam"
	"persia/infra/storage"
	"persia/workload/persia"
)

// storedData is the data of a stack as found before the program registers anything.
type storedData struct {
	// found is the storage of each volume in Google Cloud.
	found map[string]storage.Found
	// pairs are the pairs of volumes in the state of the stack.
	pairs map[string]storage.Pair
	// network reports that the network that outlives the stack exists.
	network bool
	keys    *iam.Keys
	// owner is the label of what the stack creates.
	owner string
	// google is the provider of Google Cloud. It is nil on an existing cluster.
	google pulumi.ProviderResource
}

// findStorage looks up the storage of all volumes, and compares it with the last update. It
// refuses to delete data.
func findStorage(ctx *pulumi.Context, cfg *config.Stack, state before.State, google pulumi.ProviderResource) (*storedData, error) {
	volumes := cfg.StoredVolumes()
	cloud := storage.Cloud{Existing: cfg.Cluster.Existing != nil, Project: cfg.Project, Network: gke.NetworkID(cfg.Project, cfg.Cluster.Name),
		Owner: state.ID.Label(), Provider: google}
	found, err := storage.Find(ctx, cloud, volumes)
	if err != nil {
		return nil, err
	}
	pairs, previous := storage.Pairs(state.Resources), storage.Previous(state.Resources)
	written := slices.DeleteFunc(slices.Clone(volumes), func(v config.StoredVolume) bool { return !cfg.JobsWrite(v.Name) })
	for _, warning := range slices.Concat(storage.Shared(pairs, written), storage.Imported(cloud, previous, found, volumes)) {
		if err := ctx.Log.Warn(warning, nil); err != nil {
			return nil, err
		}
	}
	if err := storage.CheckPairs(pairs, volumes); err != nil {
		return nil, err
	}
	if err := storage.Deleted(ctx, cloud, previous, volumes); err != nil {
		return nil, err
	}
	data := &storedData{found: found, pairs: pairs, owner: cloud.Owner, google: google,
		keys: iam.NewKeys("keys", cfg.Project, pulumi.Provider(google))}
	data.network, err = data.hasNetwork(ctx, cfg)
	return data, err
}

// inGoogle has components register resources of Google Cloud with the stack's provider.
func (d *storedData) inGoogle() pulumi.ResourceOption {
	if d.google == nil {
		return pulumi.Composite()
	}
	return pulumi.Providers(d.google)
}

// keepsNetwork reports whether destroy keeps a Filestore instance, and with it the network: without
// the network nothing reaches the instance, and Google deletes no network with an instance in it.
func keepsNetwork(cfg *config.Stack) bool {
	return slices.ContainsFunc(cfg.StoredVolumes(), func(v config.StoredVolume) bool {
		return inNetwork(v) && !v.DeletesData()
	})
}

// hasNetwork reports whether the network of an earlier life of the stack exists. Destroy keeps it
// even if the stack had not created the instance yet.
func (d *storedData) hasNetwork(ctx *pulumi.Context, cfg *config.Stack) (bool, error) {
	if cfg.Cluster.Existing != nil || !slices.ContainsFunc(cfg.StoredVolumes(), inNetwork) {
		return false, nil
	}
	exists, err := compute.LookUp(ctx, "network", map[string]any{"project": cfg.Project, "name": cfg.Cluster.Name}, &struct{}{}, d.google)
	if err != nil {
		return false, fmt.Errorf("look for the network %s: %w", cfg.Cluster.Name, err)
	}
	return exists, nil
}

// inNetwork reports whether the stack creates storage in its own network.
func inNetwork(v config.StoredVolume) bool {
	return v.Filestore != nil && v.Creates()
}

// volumeArgs returns the arguments of a volume without the use that pods make of it.
func (d *storedData) volumeArgs(cfg *config.Stack, v config.Volume) storage.Args {
	return storage.Args{
		Volume:   v,
		Found:    d.found[v.Name],
		Pair:     d.pairs[v.Name],
		Existing: cfg.Cluster.Existing != nil,
		Owner:    d.owner,
		Project:  cfg.Project,
		Network:  gke.NetworkID(cfg.Project, cfg.Cluster.Name),
		Keys:     d.keys,
	}
}

// newVolumes registers the volumes of jobs, after needs.
func (d *deployment) newVolumes(needs []pulumi.CustomResource) {
	for _, v := range d.cfg.Storage {
		args := d.data.volumeArgs(d.cfg, v)
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
