package stack

import "persia/stack/effects"

// effects returns what the update does to running pods and stored data. A new stack has none.
func (d *deployment) effects() []string {
	after, paths := effects.New(), map[string]string{}
	after.Replaced = d.replaced
	for _, object := range d.in.Planned {
		after.Add(object)
	}
	for _, job := range d.cfg.Jobs {
		paths[job.Name] = job.At().String()
	}
	if d.cfg.Cluster.Existing == nil {
		for _, pool := range d.cfg.Pools() {
			after.AddPool(d.cfg.PoolPath(pool.Name), effects.NodePool{Pool: pool, Cluster: d.cfg.Cluster, Driver: d.cfg.NVIDIADriver})
		}
	}
	return effects.Of(d.ran, after, paths)
}
