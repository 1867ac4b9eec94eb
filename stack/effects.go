package stack

import (
	"persia/infra/storage"
	"persia/stack/effects"
)

// effects returns what the update does to running pods and stored data. A new stack has none.
func (d *deployment) effects() []string {
	after, paths := effects.New(), map[string]string{}
	after.Replaced, after.Protected, after.Zones = d.replaced, d.cfg.Cluster.DeletionProtection, d.cfg.Cluster.Zones
	after.Driver = d.cfg.NVIDIADriver
	for _, job := range d.cfg.Jobs {
		paths[job.Name] = job.At().String()
		for _, object := range d.jobs[job.Name].Objects {
			after.Add(object)
		}
	}
	if d.cfg.Cluster.Existing == nil {
		for _, pool := range d.cfg.Pools() {
			after.AddPool(d.cfg.PoolPath(pool.Name), effects.NodePool{Pool: pool, Cluster: d.cfg.Cluster, Driver: d.cfg.NVIDIADriver})
		}
	}
	if d.cfg.HasQueues() {
		for _, object := range queuesArgs(d.cfg, nil).ClusterQueues() {
			after.AddQueue(object)
		}
	}
	for i, cluster := range d.cfg.NATSClusters() {
		after.AddNATS(cluster.Name, d.brokers[i].Object, d.brokers[i].ReplacedBy)
	}
	volumes := d.volumes
	if d.pedl != nil {
		for _, object := range d.pedl.objects {
			after.Add(object)
		}
		if d.pedl.volume != nil {
			volumes = append([]*storage.Volume{d.pedl.volume}, volumes...)
		}
	}
	for _, volume := range volumes {
		after.Add(volume.Object)
	}
	return effects.Of(d.before, after, paths)
}
