package stack

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/storage"
	"persia/workload/persia"
)

// export exports all outputs of the stack.
func (d *deployment) export() {
	outputs := pulumi.Map{
		"capacity":          pulumi.Any(capacityOutput(d.plan)),
		"clusterName":       d.cluster.Name,
		"natsUrl":           pulumi.String(d.brokers[0].Broker.URL),
		"checkpointVolumes": volumeOutputs(d.volumes),
		"jobs":              jobOutputs(d.jobs),
		"serviceAccounts":   serviceAccounts(d.ctx, d.cfg),
		storage.OutputName:  d.data.output,
	}
	if d.cluster.Access != nil {
		outputs["clusterEndpoint"] = d.cluster.Access.Endpoint
		outputs["kubeconfig"] = d.cluster.Access.Kubeconfig
	}
	if queued := queuedJobs(d.cfg); len(queued) > 0 {
		outputs["queuedJobs"] = queued
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

// queuedJobs gives the queue of each job that waits in one or has left it, with commands that show the
// job's place and what it waits for.
func queuedJobs(cfg *config.Stack) pulumi.Map {
	outputs := pulumi.Map{}
	for _, job := range cfg.Jobs {
		if job.Queue == "" || job.Suspend {
			continue
		}
		outputs[job.Name] = pulumi.StringMap{
			"queue":    pulumi.String(job.Queue),
			"priority": pulumi.String(job.Priority),
			"place":    pulumi.String("go run ./cmd/persia status"),
			"events": pulumi.Sprintf("kubectl -n %s get events --field-selector involvedObject.kind=Workload",
				persia.NamespaceName),
		}
	}
	return outputs
}
