package stack

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/config/volumespec"
	"persia/infra/gke"
	"persia/infra/iam"
	"persia/infra/lastupdate"
	"persia/infra/storage"
	"persia/workload/persia"
)

// storedData is what is known of the data of a stack before anything is registered.
type storedData struct {
	// found is what Google Cloud has of each volume.
	found map[string]storage.Found
	// pairs are what the state of the stack has of each volume.
	pairs map[string]storage.Pair
	// left are Filestore instances that volumes have left in the network.
	left []storage.Record
	keys *iam.Keys
	// output is what the next update reads.
	output pulumi.Input
}

// findStorage asks for the storage of all volumes, and compares them with those of
// the last update. It refuses what would delete data, and warns of what would leave
// it behind.
func findStorage(ctx *pulumi.Context, cfg *config.Stack, last lastupdate.State) (*storedData, error) {
	network, volumes := gke.NetworkID(cfg.Project, cfg.Cluster.Name), cfg.StoredVolumes()
	found, err := storage.Find(ctx, cfg.Project, network, volumes)
	if err != nil {
		return nil, err
	}
	previous, err := storage.Previous(last.Outputs)
	if err != nil {
		return nil, err
	}
	pairs := storage.Pairs(last.Resources)
	if err := storage.CheckPairs(pairs, volumes); err != nil {
		return nil, err
	}
	if err := storage.Deleted(ctx, cfg.Project, network, previous, volumes); err != nil {
		return nil, err
	}
	for _, warning := range storage.Moved(previous, volumes, found) {
		if err := ctx.Log.Warn(warning, nil); err != nil {
			return nil, err
		}
	}
	left, err := storage.Left(ctx, cfg.Project, network, previous, volumes)
	if err != nil {
		return nil, err
	}
	output, err := storage.Output(storage.Records(volumes, left))
	return &storedData{found: found, pairs: pairs, left: left, keys: iam.NewKeys(cfg.Project), output: output}, err
}

// keepsNetwork reports whether a Filestore instance stays when the stack goes: nobody
// reaches it without its network, and Google deletes no network with an instance in
// it.
func (d *storedData) keepsNetwork(cfg *config.Stack) bool {
	return len(d.left) > 0 || slices.ContainsFunc(cfg.StoredVolumes(), func(v volumespec.Stored) bool {
		return inNetwork(v) && !v.DeletesData()
	})
}

// hasNetwork reports whether the network exists, by an instance of the stack's that
// is in it.
func (d *storedData) hasNetwork(cfg *config.Stack) bool {
	return len(d.left) > 0 || slices.ContainsFunc(cfg.StoredVolumes(), func(v volumespec.Stored) bool {
		return inNetwork(v) && d.found[v.Name].Network == cfg.Cluster.Name
	})
}

// inNetwork reports whether the stack creates storage in its own network.
func inNetwork(v volumespec.Stored) bool {
	creation := v.Creation()
	return creation != nil && creation.InNetwork
}

func newVolumes(ctx *pulumi.Context, cfg *config.Stack, data *storedData, needs []pulumi.CustomResource, inCluster pulumi.ResourceOption) ([]*storage.Volume, error) {
	var volumes []*storage.Volume
	for _, v := range cfg.Storage {
		registered, err := storage.NewVolume(ctx, v.Name, storage.Args{
			Volume:    v,
			Found:     data.found[v.Name],
			Pair:      data.pairs[v.Name],
			Project:   cfg.Project,
			Network:   gke.NetworkID(cfg.Project, cfg.Cluster.Name),
			Keys:      data.keys,
			Namespace: persia.NamespaceName,
			Contents:  "checkpoints",
			Needs:     needs,
		}, inCluster)
		if err != nil {
			return nil, err
		}
		volumes = append(volumes, registered)
	}
	return volumes, nil
}

// claims are what pods with the volumes come after.
func claims(volumes []*storage.Volume) []pulumi.CustomResource {
	var claims []pulumi.CustomResource
	for _, volume := range volumes {
		claims = append(claims, volume.Claim)
	}
	return claims
}
