package stack

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// hourlyCost is the name of the output with the cost of all nodes for an hour.
const hourlyCost = "hourlyCost"

// export exports all outputs of the stack.
func (d *deployment) export() {
	volumes := pulumi.Array{}
	for _, volume := range d.volumes {
		volumes = append(volumes, volume.Output)
	}
	outputs := pulumi.Map{
		"clusterName":       d.cluster.Name,
		"natsUrl":           pulumi.String(d.brokers[0].Broker.URL),
		"checkpointVolumes": volumes,
		"serviceAccounts":   serviceAccounts(d.ctx, d.cfg),
	}
	if d.cluster.Access != nil {
		outputs["clusterEndpoint"] = d.cluster.Access.Endpoint
		outputs["kubeconfig"] = d.cluster.Access.Kubeconfig
	}
	if cost := d.plan.HourlyCost; cost != nil {
		outputs[hourlyCost] = pulumi.Float64(*cost)
	}
	if d.pedl != nil {
		outputs["pedl"] = d.pedl
	}
	for name, value := range outputs {
		d.ctx.Export(name, value)
	}
}
