package stack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/capacity"
	"persia/config"
	"persia/infra/before"
	"persia/infra/iam"
	"persia/infra/storage"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/persia"
	"persia/workload/queue"
)

// newNATS registers, after needs, the NATS cluster of each job, in the order of the jobs. A stack without jobs has one
// for other clients.
func (d *deployment) newNATS(needs []pulumi.CustomResource) {
	for _, cluster := range d.cfg.NATSClusters() {
		d.brokers = append(d.brokers, nats.NewCluster(d.in, cluster.Name, nats.ClusterArgs{
			NATS:       cluster.NATS,
			Images:     d.cfg.Images,
			Placement:  placement(d.cfg, cluster.NodePool),
			Clients:    persia.PodsOf(cluster.Job),
			Monitoring: monitoring(d.cfg.Cluster),
			Needs:      needs,
		}))
	}
}

// newJobs registers each job by its engine, and its own NATS, before which the job is deleted.
func (d *deployment) newJobs(needs []pulumi.CustomResource) {
	for i, job := range d.cfg.Jobs {
		broker := d.brokers[i]
		needs := slices.Concat(needs, broker.Objects)
		if job.Engine == config.EngineOperator {
			// Nothing starts its pods again, so they come after all servers.
			persia.NewOperatedJob(d.in, job.Name, jobArgs(d.cfg, job, broker.Broker, slices.Concat(needs, broker.Ready)))
			continue
		}
		args := jobArgs(d.cfg, job, broker.Broker, slices.Concat(needs, d.grantBuckets(&job)))
		args.Stack, args.ServiceAccount = d.before.ID.String(), d.before.ID.ServiceAccount(job.Name)
		for _, training := range d.plan.Trainings {
			if training.Job == job.Name && training.Known() {
				args.Predicted = fmt.Sprintf("%.0f%%", training.Useful()*100)
			}
		}
		persia.NewJob(d.in, job.Name, args)
	}
}

// patience is how long the program waits for records. Where Cloud Storage answers 503, Google's provider tries again
// for two minutes, and Pulumi ends only after that.
const patience = 10 * time.Second

// measure adds to the plan what jobs have measured, if their records are in buckets. A record that does not exist yet,
// that the program may not read, or that does not come in time, adds nothing.
func (d *deployment) measure() error {
	late, cancel := context.WithTimeout(d.ctx.Context(), patience)
	defer cancel()
	measured := make([]chan capacity.Training, len(d.plan.Trainings))
	for i, training := range d.plan.Trainings {
		measured[i] = make(chan capacity.Training, 1)
		bucket, object := d.ran.Record(training.Job)
		if bucket == "" || d.google == nil {
			close(measured[i])
			continue
		}
		go func() {
			defer close(measured[i])
			record, err := storage.Content(d.ctx, bucket, object, d.google)
			if err == nil {
				training, err = training.Measure(record, d.before.ID.String()+"/"+training.Job)
			}
			if err == nil {
				measured[i] <- training
			} else {
				_ = d.ctx.Log.Debug(err.Error(), nil)
			}
		}()
	}
	var trainings []capacity.Training
	for i, training := range d.plan.Trainings {
		trainings = append(trainings, training)
		select {
		case training, read := <-measured[i]:
			if read {
				trainings = append(trainings, training)
			}
		case <-late.Done():
			if err := d.warn(fmt.Sprintf("the plan lacks what the job %s has measured: Cloud Storage has not answered for %s. "+
				"Pulumi may wait for it at the end, for up to two minutes", training.Job, patience)); err != nil {
				return err
			}
		}
	}
	d.plan.Trainings = trainings
	return nil
}

func jobArgs(cfg *config.Stack, job config.Job, broker nats.Broker, needs []pulumi.CustomResource) persia.JobArgs {
	args := persia.JobArgs{
		Job:             job,
		Images:          cfg.Images,
		OperatorImage:   cfg.Operator.Image,
		Broker:          broker,
		Claims:          map[string]string{},
		PodAnnotations:  map[string]map[string]string{},
		Placements:      map[string]kube.Placement{},
		SystemPlacement: placement(cfg, cfg.SystemPoolName()),
		Needs:           needs,
	}
	if job.Queue != "" {
		args.QueueLabels = queue.JobLabels(job.Queue, job.Priority)
	}
	for _, volume := range cfg.Storage {
		args.Claims[volume.Name] = volume.Claim
	}
	for _, role := range job.Roles() {
		args.Placements[role.NodePool] = placement(cfg, role.NodePool)
		annotations := map[string]string{}
		if sidecar, ok := job.GCSFuseSidecar(role.Kind); ok {
			maps.Copy(annotations, storage.SidecarAnnotations(sidecar))
		}
		if role.Name == config.KindNNWorker.Name && cfg.AsksForNNWorkers(&job) {
			maps.Copy(annotations, queue.ProvisionedPods(job.Name))
			pool, _ := cfg.Pool(role.NodePool)
			args.QueueAnnotations = queue.AskedPools(pool.Listed())
		}
		args.PodAnnotations[role.Name] = annotations
	}
	return args
}

// grantBuckets lets a job's pods reach the buckets that it mounts. A grant belongs to the job and to the bucket, and to
// no volume, so that it lasts as long as both.
func (d *deployment) grantBuckets(job *config.Job) []pulumi.CustomResource {
	var mounted []iam.Bucket
	for i, v := range d.cfg.Storage {
		if bucket := d.volumes[i].Bucket; bucket != nil && job.MountsVolume(v.Name) {
			mounted = append(mounted, iam.Bucket{Name: v.GCSFuse.Bucket, ID: bucket})
		}
	}
	if len(mounted) == 0 {
		return nil
	}
	return iam.NewBucketGrants(d.in, job.Name, iam.BucketGrantsArgs{
		Project:        d.cfg.Project,
		Buckets:        mounted,
		Namespace:      persia.NamespaceName,
		ServiceAccount: d.before.ID.ServiceAccount(job.Name),
		Needs:          kube.Needs(d.cluster.ControlPlane),
	})
}

// serviceAccounts returns the Kubernetes service account of each job.
func serviceAccounts(id before.ID, cfg *config.Stack) pulumi.StringMap {
	accounts := pulumi.StringMap{}
	for _, job := range cfg.Jobs {
		if job.Engine != config.EngineOperator {
			accounts[job.Name] = pulumi.String(id.ServiceAccount(job.Name))
		}
	}
	return accounts
}

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
		pool := queue.Pool{Name: name, Placement: placement(cfg, name)}
		if first, _, isList := strings.Cut(name, ","); isList {
			// One more pool in a list changes no name. Kueue takes a key of a taint once, and pools of a list may have several.
			pool.Name, pool.Placement.Tolerations = first, nil
		}
		args.Pools = append(args.Pools, pool)
	}
	for _, team := range cfg.Queue.Teams {
		args.Teams = append(args.Teams, queue.Team{Name: team.Name, Quotas: cfg.Quotas(team)})
	}
	return args
}
