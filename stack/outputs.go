package stack

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/storage"
)

// hourlyCost is the name of the output with the cost of all nodes for an hour.
const hourlyCost = "hourlyCost"

// export exports all outputs of the stack.
func (d *deployment) export() {
	outputs := pulumi.Map{
		"clusterName":       d.cluster.Name,
		"natsUrl":           pulumi.String(d.brokers[0].Broker.URL),
		"checkpointVolumes": volumeOutputs(d.volumes),
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
		outputs["pedl"] = d.pedl.output()
	}
	for name, value := range outputs {
		d.ctx.Export(name, value)
	}
}

func volumeOutputs(volumes []*storage.Volume) pulumi.Array {
	outputs := pulumi.Array{}
	for _, volume := range volumes {
		outputs = append(outputs, volumeOutput(volume))
	}
	return outputs
}

// volumeOutput names a volume and its claim, and says whether destroy keeps its data.
func volumeOutput(volume *storage.Volume) pulumi.Map {
	return pulumi.Map{
		"volume": pulumi.String(volume.Object.Name),
		"claim":  pulumi.String(volume.Object.Spec.ClaimRef.Name),
		// `pulumi destroy` prints the outputs as it deletes them.
		"storage":   pulumi.String(volume.Storage),
		"onDestroy": pulumi.String(volume.OnDestroy),
	}
}
