package stack

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/workload/queue"
)

// newQueues registers Kueue, unless the cluster has it, the queues in which jobs wait, and the provisioner, which asks
// for the nodes of queued provisioning. It returns the resources that come before the jobs.
func (d *deployment) newQueues(needs []pulumi.CustomResource) []pulumi.CustomResource {
	if !d.cfg.HasQueues() {
		return nil
	}
	if d.cfg.InstallsKueue() {
		needs = queue.InstallKueue(d.in, "kueue", d.cfg.Queue, needs)
	}
	needs = slices.Concat(needs, queue.NewQueues(d.in, "queues", queuesArgs(d.cfg, needs)))
	if !d.cfg.AsksForNodes() {
		return needs
	}
	return slices.Concat(needs, queue.InstallProvisioner(d.in, "provisioner", needs))
}

func queuesArgs(cfg *config.Stack, needs []pulumi.CustomResource) queue.QueuesArgs {
	args := queue.QueuesArgs{Queue: cfg.Queue, Uncounted: cfg.Uncounted(), Needs: needs}
	for _, name := range cfg.QueuePools() {
		args.Pools = append(args.Pools, queue.Pool{Name: name, Placement: placement(cfg, name)})
	}
	for _, team := range cfg.Queue.Teams {
		args.Teams = append(args.Teams, queue.Team{Name: team.Name, Quotas: cfg.Quotas(team)})
	}
	return args
}

// queueLabels returns the labels that identify a job to Kueue, or nil for a job that is in no queue.
func queueLabels(job config.Job) map[string]string {
	if job.Queue == "" {
		return nil
	}
	return queue.JobLabels(job.Queue, job.Priority)
}
