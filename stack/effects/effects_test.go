package effects

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/infra/gke"
	"persia/workload/persia/persiav1"
)

// inState returns an object as the state of a stack has it.
func inState(t *testing.T, kind, text string) Stack {
	t.Helper()
	var outputs map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &outputs))
	return Read(map[resource.URN]map[string]any{resource.URN("urn:pulumi:dev::persia::" + kind + "::object"): outputs})
}

const statefulSet = "persia:workload:Job$kubernetes:apps/v1:StatefulSet"

// TestRestarts: pods restart if the program asks for others, whatever the API server has filled in.
func TestRestarts(t *testing.T) {
	const asked = `
metadata: {name: criteo-nn-worker, namespace: persia, annotations: {persia.com/pods: one}}
spec:
  replicas: 2
  template:
    metadata: {labels: {persia_job: criteo, app.kubernetes.io/name: nn-worker}}
    spec: {containers: [{name: nn-worker}]}
`
	filledIn := strings.Replace(asked, "{name: nn-worker}]", "{name: nn-worker, imagePullPolicy: Always}], dnsPolicy: ClusterFirst", 1)
	for name, c := range map[string]struct{ old, new, says string }{
		"nothing":        {"", "", ""},
		"replicas alone": {"replicas: 2", "replicas: 3", ""},
		"pods":           {"pods: one", "pods: two", "persia:jobs[0]: the job criteo restarts: this replaces the pods of nn-worker (2)"},
	} {
		t.Run(name, func(t *testing.T) {
			var set appsv1.StatefulSet
			require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(asked, c.old, c.new, 1)), &set))
			after := New()
			after.Add(&set)
			says := strings.Join(Of(inState(t, statefulSet, filledIn), after, map[string]string{"criteo": "persia:jobs[0]"}), "\n")
			assert.True(t, says == c.says || c.says != "" && strings.HasPrefix(says, c.says), says)
		})
	}
}

// TestVolumesOfAJob gives a volume of a job another source. What outlived the pod is no longer seen.
func TestVolumesOfAJob(t *testing.T) {
	const pods = `
metadata: {name: criteo-nn-worker, namespace: persia, annotations: {persia.com/pods: "SOURCE"}}
spec:
  template:
    metadata: {labels: {persia_job: criteo, app.kubernetes.io/name: nn-worker}}
    spec:
      containers: [{name: nn-worker, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, SOURCE}]
`
	for source, storage := range map[string]string{
		"hostPath: {path: /var/lib/data}":                                                     "directory /var/lib/data of the node",
		"nfs: {server: 10.9.0.2, path: /data}":                                                "nfs://10.9.0.2/data",
		"gcePersistentDisk: {pdName: features}":                                               "disk features",
		"csi: {driver: gcsfuse.csi.storage.gke.io, volumeAttributes: {bucketName: features}}": "gs://features",
		"persistentVolumeClaim: {claimName: features}":                                        "the claim features",
		"emptyDir: {}":                "",
		"configMap: {name: features}": "",
		"csi: {driver: secrets-store.csi.x-k8s.io, volumeAttributes: {secretProviderClass: one}}": "",
	} {
		t.Run(source, func(t *testing.T) {
			var set appsv1.StatefulSet
			require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(pods, "SOURCE", "emptyDir: {medium: Memory}")), &set))
			after := New()
			after.Add(&set)
			effects := Of(inState(t, statefulSet, strings.ReplaceAll(pods, "SOURCE", source)), after, map[string]string{"criteo": "persia:jobs[0]"})
			says := "no longer see " + storage + ", which they had at /data; the data stays there"
			assert.Equal(t, storage != "", strings.Contains(strings.Join(effects, "\n"), says), "%s", effects)
			assert.Contains(t, effects[len(effects)-1], "the job criteo restarts")
		})
	}
}

// TestRecordOfARun moves the record of a run by an edit of the mounts. A complete job that lacks it
// trains again.
func TestRecordOfARun(t *testing.T) {
	const pods = `
metadata: {name: criteo-nn-worker, namespace: persia}
spec:
  template:
    metadata: {labels: {persia_job: criteo, app.kubernetes.io/name: nn-worker}}
    spec:
      containers:
      - name: nn-worker
        env: [{name: PERSIA_RUN, value: "1"}, {name: PERSIA_STATE_DIR, value: MOUNT/.persia/criteo/1}]
        volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}, {name: a, mountPath: /c}, {name: state, mountPath: /state}]
      volumes:
      - {name: a, persistentVolumeClaim: {claimName: a}}
      - {name: b, persistentVolumeClaim: {claimName: b}}
      - {name: state, emptyDir: {}}
`
	const moves = "the record of the run of the job criteo stays in folder .persia/criteo/1 of the claim a, where its nn-workers no longer read it"
	for name, c := range map[string]struct {
		was, is string
		moves   bool
	}{
		"nowhere":          {"/a", "/a", false},
		"to another claim": {"/a", "/b", true},
		"into the pod":     {"/a", "/state", true},
		"out of the pod":   {"/state", "/a", false},
		"to another path":  {"/a", "/c", false},
	} {
		t.Run(name, func(t *testing.T) {
			var set appsv1.StatefulSet
			require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(pods, "MOUNT", c.is, 1)), &set))
			after := New()
			after.Add(&set)
			effects := Of(inState(t, statefulSet, strings.Replace(pods, "MOUNT", c.was, 1)), after, map[string]string{"criteo": "persia:jobs[0]"})
			assert.Equal(t, c.moves, strings.Contains(strings.Join(effects, "\n"), moves), "%s", effects)
		})
	}
}

// TestRemovedVolumes: a driver deletes the storage of a removed volume only if the volume says so.
func TestRemovedVolumes(t *testing.T) {
	const volume = `
metadata: {name: features}
spec:
  persistentVolumeReclaimPolicy: POLICY
  claimRef: {name: features}
  csi: {driver: gcsfuse.csi.storage.gke.io, volumeHandle: features}
`
	for policy, says := range map[string]string{
		"Delete": "the volume features is no longer in the stack file, and its driver deletes gs://features with all data, because its reclaimPolicy is Delete",
		"Retain": "the volume features is no longer in the stack file. Its data stays in gs://features, where no pod sees it",
	} {
		t.Run(policy, func(t *testing.T) {
			before := inState(t, "persia:storage:Volume$kubernetes:core/v1:PersistentVolume", strings.Replace(volume, "POLICY", policy, 1))
			before.Jobs["criteo"] = Job{Roles: map[string]Role{"nn-worker": {Replicas: 1, Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Env:          []corev1.EnvVar{{Name: "PERSIA_CKPT_ROOT", Value: "/data/criteo"}},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "features"},
				}}},
			}}}}}
			effects := Of(before, New(), nil)
			require.Len(t, effects, 2)
			assert.Equal(t, policy == "Retain", strings.Contains(effects[0], "Its checkpoints stay in folder criteo of gs://features"), effects[0])
			assert.Contains(t, effects[1], says)
		})
	}
}

// TestJobsOfTheOperator: PERSIA's operator deletes all pods of a job that changes.
func TestJobsOfTheOperator(t *testing.T) {
	const had = `
metadata: {name: criteo, namespace: persia, annotations: {persia.com/pods: one}}
spec:
  nnWorker: {replicas: 2, nprocPerNode: 1}
  dataloader: {replicas: 1}
`
	for name, c := range map[string]struct{ old, new, says string }{
		"nothing":       {"", "", ""},
		"more replicas": {"dataloader: {replicas: 1", "dataloader: {replicas: 2", "restarts: this deletes its 3 replicas and creates 4: about 2m without the job, if a replica takes so long. It then trains from what its script loads"},
		"pods":          {"pods: one", "pods: two", "restarts: this deletes its 3 replicas and creates 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var job persiav1.PersiaJob
			require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(had, c.old, c.new, 1)), &job))
			after := New()
			after.Add(&job)
			effects := Of(inState(t, "persia:operator:Job$kubernetes:persia.com/v1:PersiaJob", had), after, map[string]string{"criteo": "persia:jobs[0]"})
			if c.says == "" {
				assert.Empty(t, effects)
				return
			}
			require.Len(t, effects, 1)
			assert.Contains(t, effects[0], "persia:jobs[0]: the job criteo "+c.says)
		})
	}
}

// TestPoolsOfOthers: the nodes of a pool go with the pods of PERSIA's operator, which name no node,
// with the NATS servers, and with PEDL.
func TestPoolsOfOthers(t *testing.T) {
	const objects = `
- metadata: {name: criteo, namespace: persia}
  kind: kubernetes:persia.com/v1:PersiaJob
  spec:
    env: [{name: PERSIA_NATS_URL, value: "nats://persia-nats.nats-io.svc:4222"}]
    nnWorker: {replicas: 2, nprocPerNode: 1, resources: {limits: {nvidia.com/gpu: "1"}}}
    dataloader: {replicas: 1}
- metadata: {name: persia-nats, namespace: nats-io}
  kind: kubernetes:nats.io/v1alpha2:NatsCluster
  spec: {size: 1, pod: {nodeSelector: {cloud.google.com/gke-nodepool: system}}}
- metadata: {name: pedl-master, namespace: pedl}
  kind: kubernetes:apps/v1:Deployment
  spec: {template: {spec: {nodeSelector: {cloud.google.com/gke-nodepool: services}}}}
- metadata: {name: pedl-postgresql, namespace: pedl}
  kind: kubernetes:apps/v1:StatefulSet
  spec: {template: {spec: {nodeSelector: {cloud.google.com/gke-nodepool: services}, volumes: [{name: data, emptyDir: {}}]}}}
- metadata: {name: pedl-agent, namespace: pedl-agents}
  kind: kubernetes:apps/v1:DaemonSet
  spec: {template: {spec: {nodeSelector: {determined.ai/pedl-agent: present}}}}
- metadata: {name: gateway, namespace: persia}
  kind: kubernetes:apps/v1:Deployment
  spec: {template: {spec: {nodeSelector: {cloud.google.com/gke-nodepool: gpu}}}}
- {name: system, kind: gcp:container/nodePool:NodePool}
- {name: services, kind: gcp:container/nodePool:NodePool}
- {name: gpu, kind: gcp:container/nodePool:NodePool, nodeConfig: {guestAccelerators: [{type: nvidia-l4}]}}
- {name: agents, kind: gcp:container/nodePool:NodePool, nodeConfig: {labels: {determined.ai/pedl-agent: present}, guestAccelerators: [{type: nvidia-l4}]}}
`
	var all []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(objects), &all))
	resources := map[resource.URN]map[string]any{}
	for i, object := range all {
		resources[resource.URN(fmt.Sprintf("urn:pulumi:dev::persia::%s::%d", object["kind"], i))] = object
	}
	before := Read(resources)
	const (
		connections = "the processes of the job criteo lose their connections, and nothing restarts them together"
		loaders     = "Pods of dataloader of the job criteo may run there: if the node of one goes, the job fails, because the operator creates no pod again"
		training    = "Pods of nn-worker of the job criteo may run there"
		starts      = "After your next change of the job, it trains from what its script loads"
	)
	for pool, says := range map[string][]string{
		"system":   {loaders, starts, "The only NATS server of the job criteo runs there: " + connections},
		"services": {loaders, starts, "Pods of pedl-master, pedl-postgresql of PEDL run there, and are away until they are ready on other nodes", "The data of pedl-postgresql is lost with its pod"},
		"gpu":      {training, starts},
		"agents":   {training, starts, "Pods of pedl-agent of PEDL run there"},
	} {
		t.Run(pool, func(t *testing.T) {
			after := New()
			after.Jobs, after.PEDL = before.Jobs, before.PEDL
			for name := range before.Pools {
				if name != pool {
					after.Pools[name] = before.Pools[name]
				}
			}
			effects := Of(before, after, nil)
			require.Len(t, effects, 1)
			sentences := strings.Split(effects[0], ". ")
			for _, text := range says {
				assert.Contains(t, effects[0], text)
			}
			assert.Len(t, sentences, 2+len(says), "%s", effects[0])
		})
	}
}

// TestPoolChanges: the tag of a pool's field says what a change of it costs.
func TestPoolChanges(t *testing.T) {
	const state = `{name: gpu, nodeCount: 2, nodeLocations: [us-central1-a], nodeConfig: {machineType: g2-standard-8, imageType: COS_CONTAINERD, gvnic: {enabled: true}, diskSizeGb: 100, guestAccelerators: [{type: nvidia-l4, count: 1}]}}`
	for name, c := range map[string]struct {
		edit func(*config.Pool)
		says string
	}{
		"nothing":        {func(*config.Pool) {}, ""},
		"a machine type": {func(p *config.Pool) { p.MachineType = "g2-standard-16" }, "persia:nodePools[0].machineType was g2-standard-8 and is now g2-standard-16: GKE drains and recreates the nodes of the pool gpu"},
		"an old machine": {func(p *config.Pool) { p.MachineType = "m1-ultramem-40" }, "persia:nodePools[0].machineType was g2-standard-8 and is now m1-ultramem-40, persia:nodePools[0].machineType's gVNIC was true and is now not set: Google Cloud deletes all nodes of the pool gpu"},
		"a disk":         {func(p *config.Pool) { p.Disk.SizeGB = 200 }, "persia:nodePools[0].disk.sizeGb was 100 and is now 200: GKE drains and recreates"},
		"spot machines":  {func(p *config.Pool) { p.Spot = true }, "persia:nodePools[0].spot was not set and is now true: Google Cloud deletes all nodes of the pool gpu"},
		"other GPUs":     {func(p *config.Pool) { p.GPU.Count = 2 }, "persia:nodePools[0].gpu.count was 1 and is now 2: Google Cloud deletes all nodes"},
		"fewer nodes":    {func(p *config.Pool) { p.Nodes = new(1) }, "persia:nodePools[0].nodes: GKE deletes nodes of the pool gpu: 1 of 2 in us-central1-a"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := config.Pool{Name: "gpu", MachineType: "g2-standard-8", ImageType: "COS_CONTAINERD", Nodes: new(2), GPU: &config.GPU{Type: "nvidia-l4", Count: 1}}
			pool.Disk.SizeGB, pool.Upgrade = 100, config.Upgrade{MaxSurge: new(1), MaxUnavailable: new(0)}
			c.edit(&pool)
			before, after := inState(t, nodePoolType, state), New()
			after.AddPool(field.NewPath("persia:nodePools").Index(0), NodePool{Pool: pool})
			before.Pools["gpu"].settings[driverVersion] = after.Pools["gpu"].settings[driverVersion]
			says := strings.Join(Of(before, after, nil), "\n")
			assert.True(t, says == c.says || c.says != "" && strings.HasPrefix(says, c.says), says)
		})
	}
}

// TestDataOfAReplacedCluster checks that the loss of data that is in no volume of the stack is
// announced.
func TestDataOfAReplacedCluster(t *testing.T) {
	on := func(source corev1.VolumeSource) Role {
		return Role{Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: source}}}}}
	}
	claimed := on(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "pedl-pvc"}})
	empty := on(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	bucket, node := Volume{Claim: "a", Storage: "gs://a"}, Volume{Claim: "a", Storage: "directory /a of the node"}
	reclaimed, share := Volume{Claim: "a", Storage: "disk", DeletesData: true}, Volume{Claim: "a", Storage: "Filestore instance a in b"}
	for name, c := range map[string]struct {
		edit func(before, after Stack)
		says string
	}{
		"a bucket":                       {func(before, after Stack) { before.Volumes["a"], after.Volumes["a"] = bucket, bucket }, "persia:storage: the data of the volume a stays in gs://a, and the new cluster has it"},
		"a disk that its driver deletes": {func(before, after Stack) { before.Volumes["a"], after.Volumes["a"] = reclaimed, reclaimed }, "persia:storage: This deletes disk with all data"},
		"an instance of another project": {func(before, after Stack) {
			before.Volumes["a"], after.Volumes["a"] = share, share
			after.Replaced.Settings = []gke.Setting{{Path: field.NewPath("persia:project"), Was: "old", Is: "new"}}
		}, "the data of the volume a stays in the Filestore instance a in b of the project old, and the new cluster does not have it"},
		"a directory":                 {func(before, after Stack) { before.Volumes["a"], after.Volumes["a"] = node, node }, "persia:storage: the data of the volume a is lost with the nodes"},
		"a database of a class":       {func(before, _ Stack) { before.PEDL["pedl-postgresql"] = claimed }, "persia:pedl: the data of pedl-postgresql does not move: its disk, of the claim pedl-pvc, stays in Google Cloud, and pedl-postgresql begins empty"},
		"a database without a volume": {func(before, _ Stack) { before.PEDL["pedl-postgresql"] = empty }, "persia:pedl: the data of pedl-postgresql is lost with its pod"},
		"nothing":                     {func(Stack, Stack) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := New(), New()
			after.Replaced = &gke.Replacement{Cluster: "persia-dev"}
			c.edit(before, after)
			effects := Of(before, after, nil)
			if c.says == "" {
				assert.Len(t, effects, 1)
				return
			}
			require.Len(t, effects, 2)
			assert.Contains(t, effects[0], "this deletes the cluster persia-dev with everything in it")
			assert.Contains(t, effects[1], c.says)
		})
	}
}

// TestProtectedCluster: Pulumi does not delete a protected cluster, even if the same update ends the
// protection.
func TestProtectedCluster(t *testing.T) {
	for _, stays := range []bool{true, false} {
		before, after := New(), New()
		before.Protected, after.Protected, after.Replaced = true, stays, &gke.Replacement{Cluster: "persia-dev"}
		assert.Contains(t, Of(before, after, nil)[0], "Pulumi refuses this: set persia:cluster.deletionProtection: false and run `pulumi up` first. Then this deletes the cluster")
	}
}

// TestSecondsWithoutNATS: the time that the effects name is the default of the launch script.
func TestSecondsWithoutNATS(t *testing.T) {
	script, err := os.ReadFile("../../workload/persia/settings.py")
	require.NoError(t, err)
	assert.Contains(t, string(script), `seconds("PERSIA_NATS_SECONDS", "30")`)
	assert.Contains(t, New().withoutNATS("criteo", Job{}), "for 30 seconds")
}

// TestUnreadableState checks that unreadable state is not compared.
func TestUnreadableState(t *testing.T) {
	var outputs map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"spec": "[secret]"}`), &outputs))
	stack := Read(map[resource.URN]map[string]any{
		"urn:pulumi:dev::persia::" + statefulSet + "::a": outputs,
		"urn:pulumi:dev::persia::" + statefulSet + "::b": nil,
	})
	assert.Empty(t, stack.Jobs)
	assert.Empty(t, Of(stack, New(), nil))
	assert.Empty(t, Text(nil))
}
