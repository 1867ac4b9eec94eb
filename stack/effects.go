package stack

import (
	"persia/infra/storage"
	"persia/stack/effects"
)

// effects returns what the update does to running pods and stored data. A new stack has none.
func (d *deployment) effects() []string {
	after, paths := effects.New(), map[string]string{}
	after.Replaced = d.replaced
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
	for _, broker := range d.brokers {
		after.AddNATS(broker.Object)
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
	return effects.Of(d.ran, after, paths)
}
