package stack

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/internal/testkit"
	"persia/stack/effects"
)

// bucket is the volume of a bucket with the claim c.
var bucket = &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Name: "c"}, PersistentVolumeSource: corev1.PersistentVolumeSource{
	CSI: &corev1.CSIPersistentVolumeSource{Driver: gcp.DriverGCSFuse, VolumeHandle: "persia-checkpoints"}}}}

// ran returns the jobs and the NATS clusters of a stack file as the state has them after an update.
func ran(cfg *config.Stack) effects.State {
	before := effects.New()
	before.Add(bucket)
	mounted := []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	for _, job := range cfg.Jobs {
		roles := map[string]effects.Workload{}
		for _, role := range job.Roles() {
			running := map[bool]int{false: role.Replicas}[job.Suspend]
			roles[role.Name] = effects.Workload{Replicas: running, Pod: corev1.PodSpec{Volumes: mounted,
				NodeSelector: map[string]string{gcp.LabelNodePool: role.NodePool}, Containers: []corev1.Container{{Resources: role.Resources}}}}
		}
		before.Trainings[job.Name] = effects.Training{Engine: job.Engine, Roles: roles}
	}
	for _, cluster := range cfg.NATSClusters() {
		before.Brokers[cluster.Name] = effects.Broker{Size: cluster.Size, Pool: cluster.NodePool}
	}
	return before
}

// TestRoomOfALeavingJob: a leaving job frees nothing before an update ends. What waits for pods must fit beside it.
func TestRoomOfALeavingJob(t *testing.T) {
	type edits = testkit.Edits
	const servers = "persia:jobs[0].embeddingParameterServer."
	room := edits{"persia:nodePools[0].nodes": 3, "persia:nodePools[1].autoscaling.maxNodes": 9, "persia:cluster.systemPool": edits{"nodes": 9}}
	limits := func(cpu int, memory string) edits { return edits{"limits": edits{"cpu": cpu, "memory": memory}} }
	job := func(name string) edits {
		small := func(pool string, limits edits) edits { return edits{"nodePool": pool, "resources": limits} }
		return edits{"name": name, "mounts": []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}},
			"persiaEnv": edits{"PERSIA_GLOBAL_CONFIG": "/c/g", "PERSIA_EMBEDDING_CONFIG": "/c/e", "PERSIA_NN_WORKER_ENTRY": "/c/t", "PERSIA_DATALOADER_ENTRY": "/c/l"},
			"nnWorker":  small("training", edits{"limits": edits{"cpu": 8, "memory": "60Gi", "nvidia.com/gpu": 8}}), "dataloader": small("loaders", limits(1, "12Gi")),
			"embeddingWorker": small("loaders", limits(1, "12Gi")), "embeddingParameterServer": small("ps", limits(60, "1500Gi"))}
	}
	// One node of 160 vCPU has the servers of both jobs.
	both := room.And(edits{servers + "resources": limits(60, "1500Gi"), "persia:jobs[1]": job("leaves")})
	without := maps.Clone(both)
	delete(without, "persia:jobs[1]")
	const says = "persia:jobs[0]: the job train does not fit on the pool ps beside the job leaves, which Pulumi deletes only when the pods of train are ready; " +
		"make two updates: first remove only the job leaves from the stack file, and run `pulumi up`; then make the other changes"
	for name, c := range map[string]struct {
		before, after edits
		says          string
	}{
		"nothing else":          {both, without, ""},
		"a larger request":      {both, without.And(edits{servers + "resources": limits(110, "2500Gi")}), says},
		"a request that fits":   {both, without.And(edits{servers + "resources": limits(80, "1800Gi")}), ""},
		"a replica more":        {both, without.And(edits{servers + "replicas": 2}), says},
		"another image":         {both, without.And(edits{"persia:jobs[0].embeddingParameterServer.image": "example.com/persia:2"}), ""},
		"a suspended job":       {both, without.And(edits{servers + "replicas": 2, "persia:jobs[0].suspend": true}), ""},
		"a resumed job":         {both.And(edits{"persia:jobs[0].suspend": true}), without.And(edits{servers + "replicas": 2}), says},
		"a JobSet":              {both.And(edits{"persia:jobs[0].engine": "jobset"}), without.And(edits{"persia:jobs[0].engine": "jobset", servers + "replicas": 2}), ""},
		"a JobSet leaves":       {both.And(edits{"persia:jobs[1].engine": "jobset"}), without.And(edits{servers + "replicas": 2}), says},
		"a new job":             {both, both.And(edits{"persia:jobs[1]": job("new")}), "persia:jobs[1]: the job new does not fit on the pool training beside the job leaves"},
		"a new job in new room": {both, both.And(edits{"persia:jobs[1]": job("new"), "persia:nodePools[2].nodes": 4, "persia:nodePools[0].nodes": 9, "persia:nodePools[1].autoscaling.maxNodes": 20}), ""},
		"a new JobSet":          {both, both.And(edits{"persia:jobs[1]": job("new").And(edits{"engine": "jobset"})}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			was := testkit.Must(testkit.Load(t, c.before))(t)
			cfg := testkit.Must(testkit.Load(t, c.after))(t)
			testkit.Fails(t, checkOrder(cfg, cfg.Plan(), ran(was)), c.says)
		})
	}
}
