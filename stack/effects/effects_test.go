package effects

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/infra/gke"
	"persia/internal/testkit"
)

// stateOf returns objects as the state of a stack has them. Each names its kind in Pulumi.
func stateOf(t *testing.T, objects string) State {
	t.Helper()
	var all []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(objects), &all))
	resources := map[resource.URN]map[string]any{}
	for i, object := range all {
		urn := resource.URN(fmt.Sprintf("urn:pulumi:dev::persia::%s::%d", object["kind"], i))
		object["kind"], resources[urn] = urn.Type().Name(), object
	}
	return Read(resources)
}

// assertEffects checks that there is one effect for each part, in their order.
func assertEffects(t *testing.T, before, after State, parts ...string) {
	t.Helper()
	effects := Of(before, after)
	require.Len(t, effects, len(parts), "%q", effects)
	for i, part := range parts {
		assert.Contains(t, effects[i].Text, part)
	}
}

// TestJobs edits nn-workers whose checkpoints and record are in a volume. What the API server has filled in is no edit.
func TestJobs(t *testing.T) {
	const asked = `
metadata: {name: criteo-nn-worker, namespace: persia, annotations: {persia.com/pods: one}}
kind: kubernetes:apps/v1:StatefulSet
spec:
  replicas: 2
  template:
    metadata: {labels: {persia_job: criteo, app.kubernetes.io/name: nn-worker}}
    spec:
      containers:
      - name: nn-worker
        env: [{name: PERSIA_CKPT_ROOT, value: /a/criteo}, {name: PERSIA_STATE_DIR, value: /b/.persia/criteo}]
        volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}, {name: b, mountPath: /c}, {name: state, mountPath: /state}]
      volumes: [{name: a, SOURCE}, {name: b, persistentVolumeClaim: {claimName: b}}, {name: state, emptyDir: {}}]
`
	const claim, record = "persistentVolumeClaim: {claimName: a}", "value: /b/.persia"
	const restarts = "criteo restarts: its 2 nn-workers are replaced, about 4 min; it resumes from the newest checkpoint in folder criteo of the claim a; to replace all at once, suspend it first"
	sees := func(storage string) string {
		return "criteo: its next attempt starts from the newest checkpoint in folder criteo of the claim a, or from the beginning if there is none; the old checkpoints stay in folder criteo of " + storage
	}
	const trainsAgain = "criteo: a complete run trains again, because nn-workers no longer see its record; that stays in folder .persia/criteo of the claim b"
	for name, c := range map[string]struct {
		source, old, new string
		says             []string
	}{
		"nothing":                       {claim, "", "", nil},
		"replicas alone":                {claim, "replicas: 2", "replicas: 3", nil},
		"pods":                          {claim, "pods: one", "pods: two", []string{restarts}},
		"the record into the pod":       {claim, record, "value: /state/.persia", []string{trainsAgain}},
		"the record in another volume":  {claim, record, "value: /a/.persia", []string{trainsAgain}},
		"the record at another path":    {claim, record, "value: /c/.persia", nil},
		"a directory":                   {"hostPath: {path: /data}", "", "", []string{sees("directory /data of the node")}},
		"a server":                      {"nfs: {server: 10.9.0.2, path: /data}", "", "", []string{sees("nfs://10.9.0.2/data")}},
		"a disk":                        {"gcePersistentDisk: {pdName: data}", "", "", []string{sees("disk data")}},
		"another run":                   {claim, "value: /a/criteo", "value: /a/second", []string{"criteo: its next attempt starts from the beginning, as run `second`, unless that has checkpoints; the old checkpoints stay in folder criteo of the claim a: to"}},
		"another claim":                 {"persistentVolumeClaim: {claimName: b}", "", "", []string{sees("the claim b")}},
		"what the pod loses":            {"emptyDir: {}", "", "", nil},
		"what the pod gets from a file": {"csi: {driver: secrets-store.csi.x-k8s.io}", "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			had := strings.Replace(asked, "SOURCE", c.source, 1)
			had = strings.Replace(had, "- name: nn-worker\n", "- name: nn-worker\n        imagePullPolicy: Always\n", 1)
			var set appsv1.StatefulSet
			require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(strings.Replace(asked, "SOURCE", claim, 1), c.old, c.new, 1)), &set))
			after := New()
			after.Add(&set)
			assertEffects(t, stateOf(t, "- "+strings.ReplaceAll(strings.TrimSpace(had), "\n", "\n  ")), after, c.says...)
		})
	}
}

// TestServers edits a job whose servers keep their memory, and divides their embeddings among others.
func TestServers(t *testing.T) {
	job := func(nnWorkers, servers string, replicas int, partial bool) State {
		stack := New()
		for role, digest := range map[string]string{"nn-worker": nnWorkers, "embedding-ps": servers} {
			contract := config.Contract{Version: 1, Partial: partial, Checkpoints: config.Folder{Path: "/a", Claim: "a"}}
			set := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: contract.Annotation()}}
			set.Annotations[config.PodsAnnotation] = digest
			set.Spec.Replicas = new(int32(replicas))
			set.Spec.Template.Labels = map[string]string{config.JobLabel: "criteo", "app.kubernetes.io/name": role}
			set.Spec.Template.Spec = corev1.PodSpec{
				Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/a"}}}},
				Volumes:    []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}}},
			}
			stack.Add(&set)
		}
		return stack
	}
	const kept = "its 3 embedding parameter servers keep their memory"
	for name, c := range map[string]struct {
		after State
		says  []string
		kept  bool
	}{
		"another image of the nn-workers": {job("two", "one", 3, true), []string{"criteo restarts: its 3 nn-workers are replaced, about 6 min"}, true},
		"another image of the servers":    {job("one", "two", 3, true), []string{"criteo restarts: its 3 embedding parameter servers are replaced, about 6 min"}, false},
		"full recovery":                   {job("two", "one", 3, false), []string{"restarts"}, false},
		"fewer servers":                   {job("one", "one", 2, true), []string{"criteo: its embeddings are divided among 2 servers instead of 3"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := job("one", "one", 3, true)
			assertEffects(t, before, c.after, c.says...)
			assert.Equal(t, c.kept, strings.Contains(Text(Of(before, c.after)), kept))
		})
	}
}

// pods are a job of PERSIA's operator, its NATS, and PEDL.
const pods = `
- metadata: {name: criteo, namespace: persia}
  kind: kubernetes:persia.com/v1:PersiaJob
  spec:
    env: [{name: PERSIA_NATS_URL, value: "nats://persia-nats.nats-io.svc:4222"}]
    nnWorker: {replicas: 2, nprocPerNode: 1, resources: {limits: {nvidia.com/gpu: "1"}}}
    dataloader: {replicas: 1}
- metadata: {name: persia-nats, namespace: nats-io}
  kind: kubernetes:nats.io/v1alpha2:NatsCluster
  spec: {size: 1, version: 2.9.17, pod: {nodeSelector: {cloud.google.com/gke-nodepool: system}}}
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

// TestPodsWithoutAPool removes each pool, and with it pods of PERSIA's operator, which name no node, NATS, and PEDL.
func TestPodsWithoutAPool(t *testing.T) {
	before := stateOf(t, pods)
	const (
		connections = "the processes of criteo lose their connections, and nothing restarts them together"
		loaders     = "criteo fails if its dataloader runs there, because the operator creates no pod again"
		training    = "criteo fails if its nn-worker runs there"
		database    = "pedl-postgresql restarts on other nodes, and its data is lost: to keep it, set persia:pedl.postgresql.persistence"
	)
	for pool, says := range map[string][]string{
		"system":   {loaders, "the NATS cluster persia-nats runs there: " + connections},
		"services": {loaders, "pedl-master restarts on other nodes", database},
		"gpu":      {training},
		"agents":   {training, "pedl-agent restarts on other nodes"},
	} {
		t.Run(pool, func(t *testing.T) {
			after := New()
			after.Trainings, after.Brokers, after.pedl = before.Trainings, before.Brokers, before.pedl
			for name := range before.pools {
				if name != pool {
					after.pools[name] = before.pools[name]
				}
			}
			effects := Of(before, after)
			require.Len(t, effects, 1)
			for _, text := range says {
				assert.Contains(t, effects[0].Text, text)
			}
			assert.Equal(t, len(says), strings.Count(effects[0].Text, "; "), effects[0].Text)
		})
	}
}

// TestOnlyServer: for another version the operator replaces NATS servers one at a time, and one server is all of them.
func TestOnlyServer(t *testing.T) {
	of := func(size, version string) State {
		return stateOf(t, strings.NewReplacer("size: 1", size, "2.9.17", version).Replace(pods))
	}
	assertEffects(t, of("size: 1", "2.9.17"), of("size: 1", "2.10.1"), "the NATS cluster persia-nats restarts: its server is replaced at once")
	assertEffects(t, of("size: 3", "2.9.17"), of("size: 3", "2.10.1"), "the NATS cluster persia-nats gets another version: its 3 servers are replaced, one at a time")
	assertEffects(t, of("size: 3", "2.9.17"), of("size: 1", "2.9.17"), "the NATS cluster persia-nats shrinks: 2 of its 3 servers end")
}

// TestPoolChanges: each setting of a pool whose change costs nodes, as the state and the stack file have it, and whether
// GKE keeps the pool. An older machine has no gVNIC.
func TestPoolChanges(t *testing.T) {
	const state = `[{name: gpu, kind: "gcp:container/nodePool:NodePool", nodeCount: 2, nodeLocations: [us-central1-a], nodeConfig: {machineType: m1-ultramem-40, imageType: COS_CONTAINERD, diskSizeGb: 100,
  guestAccelerators: [{type: nvidia-l4, count: 1, gpuDriverInstallationConfig: {gpuDriverVersion: INSTALLATION_DISABLED}}]}}]`
	pool := config.Pool{Name: "gpu", MachineType: "m1-ultramem-40", ImageType: "COS_CONTAINERD", Nodes: new(2), GPU: &config.GPU{Type: "nvidia-l4", Count: 1}}
	pool.Disk.SizeGB, pool.Upgrade = 100, config.Upgrade{MaxSurge: new(1), MaxUnavailable: new(0)}
	after := New()
	after.AddPool(field.NewPath("persia:nodePools").Index(0), WantedPool{Pool: pool})
	const and = ", persia:nodePools[0]."
	edited := func(edits ...string) State { return stateOf(t, strings.NewReplacer(edits...).Replace(state)) }
	assertEffects(t, edited("m1-ultramem-40", "g2-standard-8, gvnic: {enabled: true}, diskType: pd-ssd, fastSocket: {enabled: true}", "100", "50"), after,
		"machineType was g2-standard-8 and is now m1-ultramem-40"+and+"machineType's gVNIC was true and is now not set"+and+"disk.type was pd-ssd and is now not set"+
			and+"disk.sizeGb was 50 and is now 100"+and+"fastSocket was true and is now not set: GKE recreates the nodes of the pool gpu, 1 at once, about 20 min")
	assertEffects(t, edited("nodeCount", "queuedProvisioning: {enabled: true}, placementPolicy: {type: COMPACT}, maxPodsPerNode: 64, nodeCount", "COS", "UBUNTU",
		"diskSizeGb", "spot: true, reservationAffinity: {values: [r]}, ephemeralStorageLocalSsdConfig: {localSsdCount: 2}, bootDiskKmsKey: k, gcfsConfig: {enabled: true}, diskSizeGb",
		"nvidia-l4, count: 1", "nvidia-tesla-t4, count: 2", "INSTALLATION_DISABLED", "LATEST"), after,
		"spot was true and is now not set"+and+"queuedProvisioning was true and is now not set"+and+"reservation was r and is now not set"+and+
			"compactPlacement was COMPACT and is now not set"+and+"gpu.type was nvidia-tesla-t4 and is now nvidia-l4"+and+"gpu.count was 2 and is now 1"+and+
			"imageType was UBUNTU_CONTAINERD and is now COS_CONTAINERD"+and+"localSsdCount was 2 and is now not set"+and+"maxPodsPerNode was 64 and is now not set, "+
			"persia:cluster.encryption.bootDisks was k and is now not set, persia:cluster.imageStreaming was true and is now not set, "+
			"persia:nvidiaDriver was LATEST and is now INSTALLATION_DISABLED: Google Cloud deletes all nodes")
}

// job is a job that writes its checkpoints and its record to the claim a.
const job = `
- metadata: {name: criteo-nn-worker, namespace: persia}
  kind: kubernetes:apps/v1:StatefulSet
  spec:
    template:
      metadata: {labels: {persia_job: criteo, app.kubernetes.io/name: nn-worker}}
      spec:
        containers:
        - name: nn-worker
          env: [{name: PERSIA_CKPT_ROOT, value: /data/criteo}, {name: PERSIA_STATE_DIR, value: /data/.persia/criteo/1}]
          volumeMounts: [{name: data, mountPath: /data}]
        volumes: [{name: data, persistentVolumeClaim: {claimName: a}}]
`

// TestData: a driver deletes the storage of a volume that goes only if the volume says so, and nothing says
// of deleted data that it stays. With the cluster goes data that is in no volume of the stack.
func TestData(t *testing.T) {
	const volume = `
- metadata: {name: a}
  kind: kubernetes:core/v1:PersistentVolume
  spec: {persistentVolumeReclaimPolicy: Retain, claimRef: {name: a}, csi: {driver: gcsfuse.csi.storage.gke.io, volumeHandle: a}}
`
	const database = `
- metadata: {name: pedl-postgresql, namespace: pedl}
  kind: kubernetes:apps/v1:StatefulSet
  spec: {template: {spec: {containers: [{name: postgresql, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, SOURCE}]}}}
`
	with := func(object, old, new string) string { return strings.Replace(object, old, new, 1) }
	deleted := with(volume, "Retain", "Delete")
	moved := []gke.Setting{{Path: field.NewPath("persia:project"), Was: "old", Is: "new"}}
	for name, c := range map[string]struct {
		state    string
		replaced *gke.Replacement
		says     []string
	}{
		"a removed volume":         {volume + job, nil, []string{"criteo ends, because it is not in the stack file; its checkpoints stay in folder criteo of gs://a", "the volume a is no longer in the stack file; its data stays in gs://a"}},
		"a removed volume, Delete": {deleted + job, nil, []string{"in the stack file; gs://a is deleted with all data", "the volume a goes; gs://a is deleted with all data"}},
		"a new cluster, Delete":    {deleted, &gke.Replacement{Cluster: "dev"}, []string{"this deletes the cluster dev with everything in it", "gs://a is deleted with all data"}},
		"an instance in another project": {with(volume, "gcsfuse.csi.storage.gke.io, volumeHandle: a", "filestore.csi.storage.gke.io, volumeHandle: modeInstance/b/a/vol1"), &gke.Replacement{Settings: moved},
			[]string{"persia:project was old and is now new: this deletes", "the contents of the volume a, in Filestore instance a in b, stay in the project old, and the new cluster does not have them"}},
		"a directory": {with(volume, "csi: {driver: gcsfuse.csi.storage.gke.io, volumeHandle: a}", "hostPath: {path: /a}"), &gke.Replacement{},
			[]string{"this deletes", "the contents of the volume a, in directory /a of the node, are lost with the nodes"}},
		"a database of a class": {with(database, "SOURCE", "persistentVolumeClaim: {claimName: pedl-pvc}"), &gke.Replacement{},
			[]string{"this deletes", "pedl-postgresql ends; its disk, of the claim pedl-pvc, stays in Google Cloud, and it begins empty in the new cluster"}},
		"a database without a volume": {with(database, "SOURCE", "emptyDir: {}"), &gke.Replacement{}, []string{"this deletes", "pedl-postgresql ends, and its data is lost"}},
		"what nobody can read":        {`[{kind: "kubernetes:apps/v1:StatefulSet", spec: "[secret]"}]`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			after := New()
			after.Replaced = c.replaced
			assertEffects(t, stateOf(t, c.state), after, c.says...)
		})
	}
	assert.Empty(t, Text(nil))
	assert.Equal(t, config.EffectsTitle+"\n\n! a ends\n- b stays", Text([]Effect{{Text: "a ends", Ends: []string{"a"}}, {Text: "b stays"}}))
}

// TestNodesWithCheckpoints: what is in a directory of a node goes with the nodes of its pool, and nothing else does.
func TestNodesWithCheckpoints(t *testing.T) {
	const volume = `
- metadata: {name: a}
  kind: kubernetes:core/v1:PersistentVolume
  spec: {claimRef: {name: a}, hostPath: {path: /a}}
`
	pool := func(name, more string) string {
		return "- {kind: 'gcp:container/nodePool:NodePool', name: " + name + ", nodeCount: 1, nodeLocations: [us-central1-a], nodeConfig: {machineType: n2-standard-8" + more + "}}\n"
	}
	of := func(texts ...string) string { return strings.Join(texts, "") }
	edit := strings.NewReplacer
	placed := edit("        volumes:", "        nodeSelector: {cloud.google.com/gke-nodepool: gpu}\n        volumes:").Replace(job)
	own := edit("PERSIA_CKPT_ROOT, value: /data/criteo", "PERSIA_CKPT_DIR, value: /data").Replace(placed)
	const lost = "criteo: all its checkpoints in folder criteo of directory /a of the node are lost with the nodes: to keep them, copy them to another volume first; its next attempt starts from the "
	const anew, away = "criteo restarts on other nodes", "criteo may restart on other nodes"
	for name, c := range map[string]struct {
		before, after string
		says          []string
	}{
		"other machines": {of(volume, placed, pool("gpu", "")), of(volume, placed, pool("gpu", "x")), []string{lost, anew}},
		"spot machines":  {of(volume, placed, pool("gpu", "")), of(volume, placed, pool("gpu", ", spot: true")), []string{lost, anew}},
		"another zone":   {of(volume, placed, pool("gpu", "")), of(volume, placed, edit("-a]", "-b]").Replace(pool("gpu", ""))), []string{lost, away}},
		"a renamed pool": {of(volume, placed, pool("gpu", "")), of(volume, edit("nodepool: gpu", "nodepool: other").Replace(placed), pool("other", "")),
			[]string{lost, "the pool gpu is no longer in the stack file"}},
		"another pool":    {of(volume, placed, pool("gpu", ""), pool("cpu", "")), of(volume, placed, pool("gpu", ""), pool("cpu", ", spot: true")), []string{"Google Cloud deletes all nodes of the pool cpu, and creates them again: about 20 min without nodes"}},
		"the job moves":   {of(volume, placed, pool("gpu", "")), of(volume, edit("nodepool: gpu", "nodepool: cpu").Replace(placed), pool("gpu", ""), pool("cpu", "")), []string{"criteo: its next attempt starts from the newest checkpoint in folder criteo of directory /a of the node, or from the beginning if there is none; the old checkpoints stay in"}},
		"a suspended job": {of(volume, edit("  spec:\n    template", "  spec:\n    replicas: 0\n    template").Replace(placed), pool("gpu", "")), of(volume, placed, pool("gpu", "x")), []string{lost, "the pool gpu"}},
		"a removed job":   {of(volume, placed, pool("gpu", "")), of(volume, pool("gpu", "x")), []string{"the contents of folder criteo of directory /a of the node are lost", "the pool gpu"}},
		"its own folder": {of(volume, own, pool("gpu", "")), of(volume, own, pool("gpu", "x")),
			[]string{"criteo: all its checkpoints in directory /a of the node are lost", anew}},
		"a share": {of(edit("hostPath: {path: /a}", "nfs: {server: b, path: /a}").Replace(volume), placed, pool("gpu", "")),
			of(edit("hostPath: {path: /a}", "nfs: {server: b, path: /a}").Replace(volume), placed, pool("gpu", "x")), []string{"criteo restarts on other nodes, and resumes from the newest checkpoint in folder criteo of nfs://b/a"}},
	} {
		t.Run(name, func(t *testing.T) { assertEffects(t, stateOf(t, c.before), stateOf(t, c.after), c.says...) })
	}
}

// TestPoolLists: of the pods of a list, some may run on each pool of it, and one more pool ends none.
func TestPoolLists(t *testing.T) {
	for _, label := range []string{"cloud.google.com/compute-class", "persia.com/node-pools"} {
		pool := func(name string) string {
			return "- {kind: 'gcp:container/nodePool:NodePool', name: " + name + ", nodeConfig: {labels: {" + label + ": persia-a}}}\n"
		}
		placed := strings.Replace(job, "        volumes:", "        nodeSelector: {"+label+": persia-a}\n        volumes:", 1)
		two, three := stateOf(t, placed+pool("a")+pool("b")), stateOf(t, placed+pool("a")+pool("b")+pool("c"))
		assertEffects(t, two, three)
		assertEffects(t, three, two, "the pool c is no longer in the stack file: GKE deletes its nodes; criteo may restart on other nodes, and resumes from the newest checkpoint in")
		effect := Of(three, two)[0]
		assert.Equal(t, [][]string{{"pool c"}, {"criteo-nn-worker"}}, [][]string{effect.Ends, effect.Risks})
	}
}

// TestRecord finds the record of a run in a bucket, or in a folder of one.
func TestRecord(t *testing.T) {
	const volume = `
- metadata: {name: a}
  kind: kubernetes:core/v1:PersistentVolume
  spec: {claimRef: {name: a}, SOURCE}
`
	const bucket = "csi: {driver: gcsfuse.csi.storage.gke.io, volumeHandle: models}"
	for source, want := range map[string][2]string{
		bucket: {"models", ".persia/criteo/1/coordinator.json"},
		bucket + ", mountOptions: [implicit-dirs, only-dir=clicks/]": {"models", "clicks/.persia/criteo/1/coordinator.json"},
		"nfs: {server: 10.9.0.2, path: /data}":                       {},
	} {
		of, object := stateOf(t, strings.Replace(volume, "SOURCE", source, 1)+job).Record("criteo")
		assert.Equal(t, want, [2]string{of, object}, source)
	}
	of, _ := New().Record("criteo")
	assert.Empty(t, of, "a new stack")
}

// TestOldState reads from the pods of a release without contracts what the contract of the same job says now.
func TestOldState(t *testing.T) {
	planned := map[resource.URN]map[string]any{}
	for document := range strings.SplitSeq(testkit.Read(t, "../../tests/testdata/prod.plan.yaml"), "\n---\n") {
		var object struct {
			URN    string
			Inputs map[string]any
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		planned[resource.URN("urn:pulumi:prod::persia::"+object.URN)] = object.Inputs
	}
	old, now := stateOf(t, testkit.Read(t, "testdata/oldstate.yaml")).Trainings["criteo"].contract(), Read(planned).Trainings["criteo"].contract()
	require.Equal(t, 1, now.Version)
	now.Version, now.Replicas = 0, nil
	assert.Equal(t, now, old)
}
