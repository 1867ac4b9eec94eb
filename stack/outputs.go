package stack

import (
	"maps"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/capacity"
	"persia/config"
	"persia/infra/gke"
	"persia/infra/storage"
	"persia/workload/nats"
	"persia/workload/persia"
)

// exports are the outputs of a stack.
func exports(cfg *config.Stack, plan capacity.Plan, cluster *gke.Cluster, broker *nats.Cluster, data *storedData, volumes []*storage.Volume, jobs map[string]*persia.Job, installed *pedlInstallation) pulumi.Map {
	outputs := pulumi.Map{
		"capacity":          capacityOutput(plan),
		"clusterName":       cluster.Name,
		"natsUrl":           broker.URL,
		"checkpointVolumes": volumeOutputs(volumes),
		"jobs":              jobOutputs(jobs),
		storage.OutputName:  data.output,
	}
	if cluster.Access != nil {
		outputs["clusterEndpoint"] = cluster.Access.Endpoint
		outputs["kubeconfig"] = cluster.Access.Kubeconfig
	}
	maps.Copy(outputs, gke.Asked(cfg.Cluster))
	if installed != nil {
		outputs["pedl"] = installed.output()
	}
	return outputs
}

func volumeOutputs(volumes []*storage.Volume) pulumi.Array {
	outputs := pulumi.Array{}
	for _, volume := range volumes {
		outputs = append(outputs, volumeOutput(volume))
	}
	return outputs
}

// volumeOutput names a volume and its claim, and says what becomes of its data.
func volumeOutput(volume *storage.Volume) pulumi.Map {
	return pulumi.Map{
		"volume": volume.VolumeName,
		"claim":  volume.ClaimName,
		// `pulumi destroy` prints the outputs as it deletes them.
		"storage":   pulumi.String(volume.Storage),
		"onDestroy": pulumi.String(volume.OnDestroy),
	}
}

// jobOutputs gives the number of replicas of each role of each job.
func jobOutputs(jobs map[string]*persia.Job) pulumi.Map {
	outputs := pulumi.Map{}
	for name, job := range jobs {
		roles := pulumi.Map{}
		for _, role := range job.Roles {
			roles[role.Name] = pulumi.Int(role.Replicas)
		}
		outputs[name] = roles
	}
	return outputs
}
