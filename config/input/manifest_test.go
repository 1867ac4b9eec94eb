package input_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config"
	"persia/internal/testkit"
)

type edits = testkit.Edits

// manifest is a PersiaJob with every kind of field, and a NatsCluster. All cases edit it.
const manifestText = `
apiVersion: persia.com/v1
kind: PersiaJob
metadata:
  name: adult-income
  namespace: default
spec:
  persiaEnv:
    PERSIA_GLOBAL_CONFIG: /home/PERSIA/config/global_config.yml
    PERSIA_EMBEDDING_CONFIG: /home/PERSIA/config/embedding_config.yml
    PERSIA_NN_WORKER_ENTRY: /home/PERSIA/train.py
    PERSIA_DATALOADER_ENTRY: /home/PERSIA/data_loader.py
  env:
    - name: PERSIA_NATS_URL
      value: nats://persia-nats-service:4222
  enableMetrics: true
  logLevel: info
  restartPolicy: Never
  imagePullPolicy: IfNotPresent
  volumes:
    - name: data
      hostPath: {path: /nfs/general/data/, type: Directory}
    - name: settings
      configMap: {name: settings, defaultMode: 288, items: [{key: a, path: a.yml}]}
  embeddingParameterServer:
    replicas: 1
    resources: {limits: {memory: 24Gi, cpu: "4"}}
  embeddingWorker:
    replicas: 1
    resources: {limits: {memory: 24Gi, cpu: "4"}}
    env:
      - name: TOKEN
        valueFrom: {secretKeyRef: {name: token, key: value}}
  nnWorker:
    replicas: 1
    nprocPerNode: 1
    image: persiaml/persia-cuda-runtime:dev
    resources: {limits: {memory: 24Gi, cpu: "12", nvidia.com/gpu: "1"}}
    volumeMounts:
      - {name: data, mountPath: /data/, readOnly: true}
      - {name: settings, mountPath: /settings, subPath: a.yml}
  dataloader:
    replicas: 1
    resources: {limits: {memory: 8Gi, cpu: "1"}}
---
apiVersion: nats.io/v1alpha2
kind: NatsCluster
metadata:
  name: persia-nats-service
spec:
  size: 1
  natsConfig: {maxPayload: 52428800}
  resources: {limits: {memory: 8Gi, cpu: "2"}}
`

// besides returns the fields next to manifest in the stack file.
func besides(file string) map[string]any {
	return map[string]any{
		"manifest": file, "nodePool": "loaders",
		"nnWorker":                 map[string]any{"nodePool": "training"},
		"embeddingParameterServer": map[string]any{"nodePool": "ps"},
	}
}

// loadManifest loads the base stack with its jobs in files.
func loadManifest(t *testing.T, changes edits, files fs.FS) (*config.Stack, error) {
	t.Helper()
	all := edits{"persia:jobs": []any{besides("jobs/train.yml")}, "persia:nats": edits{}}
	return config.Load(testkit.File(t, all.And(changes)), files)
}

func inFile(text string) fs.FS { return fstest.MapFS{"jobs/train.yml": {Data: []byte(text)}} }

// replaced returns the manifest with a text replaced.
func replaced(t *testing.T, old, with string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(manifestText, old), "%q", old)
	return strings.Replace(manifestText, old, with, 1)
}

// TestManifest has what the golden plan of TestParityFields does not.
func TestManifest(t *testing.T) {
	s := testkit.Must(loadManifest(t, nil, inFile(manifestText)))(t)
	job := s.Jobs[0]
	assert.Empty(t, job.Env, "the stack's own NATS is for the program to name")
	assert.Equal(t, "training", job.NNWorker.NodePool)
	assert.Equal(t, "loaders", job.Dataloader.NodePool, "that of the job")
	assert.Equal(t, "token", job.EmbeddingWorker.Env[0].ValueFrom.SecretKeyRef.Name)
	directory, mode := corev1.HostPathDirectory, int32(0o440)
	assert.Equal(t, []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nfs/general/data/", Type: &directory}}},
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
			DefaultMode:          &mode, Items: []corev1.KeyToPath{{Key: "a", Path: "a.yml"}},
		}}},
	}, job.Volumes)

	assert.Equal(t, 1, s.NATS.Size)
	assert.Equal(t, "8Gi", s.NATS.Resources.Limits.Memory().String())
	assert.Equal(t, "persia-nats-service", s.NATS.Name)
	assert.True(t, s.MountsHostPaths())
}

// TestManifestOverlay checks that the stack file takes precedence over the manifest.
func TestManifestOverlay(t *testing.T) {
	s := testkit.Must(loadManifest(t, edits{
		"persia:jobs[0].nnWorker.replicas":  2,
		"persia:jobs[0].nnWorker.image":     "other:1",
		"persia:jobs[0].env":                []any{edits{"name": "A", "value": "b"}},
		"persia:jobs[0].globalConfigPath":   "/other.yml",
		"persia:jobs[0].middlewareServer":   edits{"replicas": 3},
		"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 6, "memory": "30Gi"}},
		"persia:nats":                       edits{"size": 3, "resources": edits{"limits": edits{"cpu": "500m", "memory": "2Gi"}}},
	}, inFile(manifestText)))(t)
	job := s.Jobs[0]
	assert.Equal(t, 2, job.NNWorker.Replicas)
	assert.Equal(t, "other:1", job.NNWorker.Image)
	assert.Equal(t, 1, job.NNWorker.NprocPerNode, "the manifest's")
	assert.Equal(t, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6"), corev1.ResourceMemory: resource.MustParse("30Gi")},
		job.NNWorker.Resources.Limits, "without the manifest's GPU")
	assert.Equal(t, []corev1.EnvVar{{Name: "A", Value: "b"}}, job.Env)
	assert.Equal(t, "/other.yml", job.PersiaEnv.GlobalConfig)
	assert.Equal(t, "/home/PERSIA/train.py", job.PersiaEnv.NNWorkerEntry)
	assert.Equal(t, 3, job.EmbeddingWorker.Replicas)
	assert.Equal(t, 3, s.NATS.Size)
	assert.Equal(t, 52428800, s.NATS.MaxPayload)
}

// TestSpellings checks that each older name results in the same job.
func TestSpellings(t *testing.T) {
	want := testkit.Must(loadManifest(t, nil, inFile(manifestText)))(t)
	for name, pairs := range map[string][]string{
		"paths": {"  persiaEnv:\n    PERSIA_GLOBAL_CONFIG:", "  globalConfigPath:", "    PERSIA_EMBEDDING_CONFIG:", "  embeddingConfigPath:",
			"    PERSIA_NN_WORKER_ENTRY:", "  nnWorkerPyEntryPath:", "    PERSIA_DATALOADER_ENTRY:", "  dataLoaderPyEntryPath:"},
		"the trainer's path":         {"    PERSIA_NN_WORKER_ENTRY: /home/PERSIA/train.py\n", "", "  logLevel:", "  trainerPyEntryPath: /home/PERSIA/train.py\n  logLevel:"},
		"roles of the first CRD":     {"  nnWorker:", "  trainer:", "  embeddingWorker:", "  middlewareServer:", "  embeddingParameterServer:", "  embeddingServer:"},
		"variable of older releases": {"PERSIA_NATS_URL", "PERSIA_NATS_IP"},
		"underscores": {"  persiaEnv:\n    PERSIA_GLOBAL_CONFIG:", "  global_config_path:", "    PERSIA_EMBEDDING_CONFIG:", "  embedding_config_path:",
			"    PERSIA_NN_WORKER_ENTRY:", "  trainer_py_entry_path:", "    PERSIA_DATALOADER_ENTRY:", "  data_loader_py_entry_path:",
			"  nnWorker:", "  trainer:", "    nprocPerNode:", "    nproc_per_node:", "  embeddingWorker:", "  middleware_server:", "  embeddingParameterServer:", "  embedding_server:",
			"  enableMetrics:", "  enable_metrics:", "  logLevel:", "  log_level:", "  imagePullPolicy:", "  image_pull_policy:", "  restartPolicy:", "  restart_policy:"},
		"paths with PATH": {"PERSIA_GLOBAL_CONFIG:", "PERSIA_GLOBAL_CONFIG_PATH:", "PERSIA_EMBEDDING_CONFIG:", "PERSIA_EMBEDDING_CONFIG_PATH:",
			"PERSIA_NN_WORKER_ENTRY:", "PERSIA_NN_WORKER_PY_ENTRY_PATH:", "PERSIA_DATALOADER_ENTRY:", "PERSIA_DATALOADER_PY_ENTRY_PATH:"},
		"read_only": {"readOnly: true", "read_only: true"},
	} {
		t.Run(name, func(t *testing.T) {
			got := testkit.Must(loadManifest(t, nil, inFile(strings.NewReplacer(pairs...).Replace(manifestText))))(t)
			assert.Equal(t, want.Jobs, got.Jobs)
		})
	}
}

func TestSeveralDocuments(t *testing.T) {
	second := strings.NewReplacer("adult-income", "second").Replace(manifestText[:strings.Index(manifestText, "---")])
	files := fstest.MapFS{
		"jobs/train.yml": {Data: []byte(manifestText + "\n---\n" + second + "---\n# nothing here\n")},
		"jobs/third.yml": {Data: []byte(replaced(t, "adult-income", "third"))},
	}
	s := testkit.Must(loadManifest(t, edits{
		"persia:jobs": []any{besides("jobs/train.yml"), besides("./jobs/third.yml")},
		// Each job has its own NATS.
		"persia:cluster.systemPool.nodes": 6,
	}, files))(t)
	var names []string
	for _, job := range s.Jobs {
		names = append(names, job.Name)
	}
	assert.Equal(t, []string{"adult-income", "second", "third"}, names)
}

// TestManifestRefuses checks the message for each mistake in a manifest, and follows its advice.
func TestManifestRefuses(t *testing.T) {
	const file = "persia:jobs[0].manifest(jobs/train.yml)"
	const job, nats = file + "[0]", file + "[1]"
	for _, c := range []struct {
		name, old, with string
		path            string
		says            []string
	}{
		{"other kind", "kind: PersiaJob", "kind: Deployment", job + ".kind", []string{`"persia.com/v1 Deployment"`, "kubectl"}},
		{"a name in the spec", "spec:\n  persiaEnv", "spec:\n  name: a\n  persiaEnv", job + ".spec.name", []string{"in metadata", "remove it"}},
		{"unknown metadata", "  namespace: default", "  namespace: default\n  uid: a", job + ".metadata.uid", []string{"unknown field", "name, namespace"}},
		{"no name", "  name: adult-income\n", "", job + ".metadata.name", []string{"Required", "write a name"}},
		{"name that is none", "name: adult-income", "name: Adult_Income", job + ".metadata.name", []string{"Adult_Income", "lower case"}},
		{"spec that is a list", "spec:\n  size: 1\n  natsConfig: {maxPayload: 52428800}\n  resources: {limits: {memory: 8Gi, cpu: \"2\"}}", "spec: []", nats + ".spec", []string{"must be an object (it is a list)"}},
		{"misspelt role", "  dataloader:", "  dataLoaders:", job + ".spec.dataLoaders", []string{"did you mean dataloader?"}},
		{"relative path in the older spelling", "    PERSIA_DATALOADER_ENTRY: /home/PERSIA/data_loader.py", "  dataLoaderPyEntryPath: data_loader.py", job + ".spec.dataLoaderPyEntryPath", []string{`"data_loader.py"`, "absolute path"}},
		{"path in both spellings", "  logLevel: info", "  globalConfigPath: /other.yml", job + ".spec.globalConfigPath", []string{"sets the same field as", "persiaEnv.PERSIA_GLOBAL_CONFIG", "one of them"}},
		{"role in both spellings", "  logLevel: info", "  trainer: {replicas: 1}", job + ".spec.trainer", []string{"sets the same field as", "spec.nnWorker", "one of them"}},
		{"replicas of an older role", "  embeddingWorker:\n    replicas: 1", "  middlewareServer:\n    replicas: -1", job + ".spec.middlewareServer.replicas", []string{"-1", "at least 1"}},
		{"variable without a name", "- name: PERSIA_NATS_URL\n      value", "- value", job + ".spec.env[0].name", []string{"Required"}},
		{"volume without a source", "      hostPath: {path: /nfs/general/data/, type: Directory}\n", "", job + ".spec.volumes[0]", []string{"Required", "persistentVolumeClaim"}},
		{"volume of an unknown kind", "hostPath: {path: /nfs/general/data/, type: Directory}", "hostpath: {path: /data}", job + ".spec.volumes[0].hostpath", []string{"did you mean hostPath?"}},
		{"mode that is too large", "defaultMode: 288", "defaultMode: 99999999999", job + ".spec.volumes[1].configMap.defaultMode", []string{"99999999999", "an integer"}},
		{"relative hostPath", "path: /nfs/general/data/", "path: nfs", job + ".spec.volumes[0].hostPath.path", []string{`"nfs"`, "write /nfs"}},
		{"volume name twice", "- name: settings\n      configMap", "- name: data\n      configMap", job + ".spec.volumes[1].name", []string{"data", "is already used by " + job + ".spec.volumes[0]"}},
		{"volume name of the program's", "- name: settings\n      configMap", "- name: launch\n      configMap", job + ".spec.volumes[1].name", []string{"launch", "another name"}},
		{"mount of no volume", "{name: settings, mountPath: /settings, subPath: a.yml}", "{name: setting, mountPath: /settings}", job + ".spec.nnWorker.volumeMounts[1].name", []string{`"setting"`, `write "data", or write "settings"`}},
		{"relative mount", "mountPath: /settings", "mountPath: settings", job + ".spec.nnWorker.volumeMounts[1].mountPath", []string{`"settings"`, "write /settings"}},
		{"two mounts at one path", "mountPath: /settings", "mountPath: /data", job + ".spec.nnWorker.volumeMounts[1].mountPath", []string{"is already used by the mount of data"}},
		{"NATS field that is not read", "natsConfig: {maxPayload: 52428800}", "auth: {enableServiceAccounts: true}", nats + ".spec.auth.enableServiceAccounts", []string{"has no counterpart in persia:nats, which has only name, nodePool, and the counterparts of size, version", "remove it"}},
		{"NATS resources twice", "  size: 1\n", "  size: 1\n  pod: {resources: {limits: {cpu: 1}}}\n", nats + ".spec.pod.resources", []string{"sets the same field as", "spec.resources"}},
		{"a key twice", "  logLevel: info", "  logLevel: info\n  logLevel: debug", file + ".spec.logLevel", []string{"is in line", "only one of them counts"}},
		{"an octal number", "  embeddingWorker:\n    replicas: 1", "  embeddingWorker:\n    replicas: 010", file + ".spec.embeddingWorker.replicas", []string{`"010"`, "is octal, which makes it 8; write 8 or 10"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadManifest(t, nil, inFile(replaced(t, c.old, c.with)))
			testkit.Says(t, err, c.path, c.says...)
			line := regexp.MustCompile(regexp.QuoteMeta(c.path) + `: .*`).FindString(err.Error())
			wrong := regexp.MustCompile(`Invalid value: "?([^":]+)|(\w+): unknown field; did`).FindStringSubmatch(line)
			for _, advice := range regexp.MustCompile(`\b(?:write|did you mean) "?(/?\w+)|8 or (10)`).FindAllStringSubmatch(line, -1) {
				if wrong != nil {
					with := strings.Replace(c.with, wrong[1]+wrong[2], advice[1]+advice[2], 1)
					_, err := loadManifest(t, nil, inFile(replaced(t, c.old, with)))
					assert.NoError(t, err, "%s of %s", advice[0], line)
				}
			}
		})
	}
}

// TestManifestFileRefuses checks the message for each mistake in files and next to manifest.
func TestManifestFileRefuses(t *testing.T) {
	files := fstest.MapFS{
		"jobs/train.yml":   {Data: []byte(manifestText)},
		"jobs/other.yml":   {Data: []byte(strings.NewReplacer("adult-income", "other", "size: 1", "size: 3").Replace(manifestText))},
		"jobs/nats.yml":    {Data: []byte(manifestText[strings.Index(manifestText, "---"):])},
		"jobs/empty.yml":   {Data: []byte("# nothing\n")},
		"jobs/list.yml":    {Data: []byte("- 1\n")},
		"jobs/compose.yml": {Data: []byte("version: '3'\nservices: {persia: {image: a}}\n")},
	}
	named := func(name string) edits { return edits{"persia:jobs": []any{besides(name)}} }
	for _, c := range []struct {
		name  string
		edits edits
		path  string
		says  []string
	}{
		{"no such file", named("jobs/missing.yml"), "persia:jobs[0].manifest", []string{`"jobs/missing.yml"`, "does not exist", "project's directory"}},
		{"file elsewhere", named("../train.yml"), "persia:jobs[0].manifest", []string{`"../train.yml"`, "in the project's directory or below it"}},
		{"directory", named("jobs"), "persia:jobs[0].manifest", []string{`"jobs"`, "cannot be read"}},
		{"no PersiaJob", named("jobs/nats.yml"), "persia:jobs[0].manifest", []string{`"jobs/nats.yml"`, "contains no PersiaJob"}},
		{"compose file", named("jobs/compose.yml"), "persia:jobs[0].manifest(jobs/compose.yml)", []string{"is no object of Kubernetes", "write a PersiaJob, whose roles are the services of a compose file"}},
		{"two kinds of NATS", edits{"persia:jobs": []any{besides("jobs/train.yml"), besides("jobs/other.yml")}},
			"persia:jobs[1].manifest(jobs/other.yml)[1]", []string{"differs from the NATS of persia:jobs[0].manifest(jobs/train.yml)[1]", "persia:nats"}},
		{"a manifest twice", edits{"persia:jobs": []any{besides("jobs/train.yml"), besides("jobs/train.yml")}},
			"persia:jobs[1].manifest(jobs/train.yml)[0].metadata.name", []string{"adult-income", "is already used by persia:jobs[0].manifest(jobs/train.yml)[0].spec"}},
		{"no node pool", edits{"persia:jobs[0].nodePool": nil}, "persia:jobs[0].manifest(jobs/train.yml)[0].spec.dataloader.nodePool", []string{"Required", "loaders"}},
		{"wrong node pool", edits{"persia:jobs[0].nodePool": "loader"}, "persia:jobs[0].nodePool", []string{`"loader"`, "loaders"}},
		{"wrong replicas beside, in the older spelling", edits{"persia:jobs[0].middlewareServer": edits{"replicas": -1}}, "persia:jobs[0].middlewareServer.replicas", []string{"-1", "at least 1"}},
		{"list beside", edits{"persia:jobs[0].env": []any{edits{"value": "a"}}}, "persia:jobs[0].env[0].name", []string{"Required"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadManifest(t, c.edits, files)
			testkit.Says(t, err, c.path, c.says...)
		})
	}
}

// FuzzManifest replaces the file.
func FuzzManifest(f *testing.F) {
	f.Add(manifestText)
	f.Add("a: [1, {b: 1e999}]\n---\n- null\n---\n")
	f.Add("apiVersion: persia.com/v1\nkind: PersiaJob\nspec: {trainer: 1, nnWorker: {volumeMounts: [null]}, persiaEnv: a, globalConfigPath: /a}\n")
	f.Add("apiVersion: nats.io/v1alpha2\nkind: NatsCluster\nspec: {pod: 1, natsConfig: {maxPayload: a}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := loadManifest(t, nil, inFile(text))
		if err != nil {
			assert.Nil(t, s)
			assert.NotEmpty(t, strings.Split(err.Error(), "\n")[1:])
			return
		}
		require.NotEmpty(t, s.Jobs)
		assert.NotEmpty(t, s.Jobs[0].Name)
	})
}

// TestStatefulSetsRefused checks the message for what is not read from the StatefulSets that PERSIA publishes.
func TestStatefulSetsRefused(t *testing.T) {
	published := testkit.Read(t, "../testdata/cases/02-published-statefulsets/train.persia.yml")
	const set = "persia:jobs[0].manifest(jobs/train.yml)[0]"
	const container = set + ".spec.template.spec.containers[0]"
	for name, c := range map[string]struct{ old, with, says string }{
		"another argument":        {"launch.sh, trainer]", "launch.sh, serve]", container + ".args: must end with the argument of launch.sh for a role: datacompose, embserver, middleware or trainer"},
		"a role twice":            {"launch.sh, datacompose]", "launch.sh, trainer]", "[1].spec.template.spec.containers[0].args: must end with"},
		"two containers":          {"      containers:\n        - name: trainer\n", "      containers:\n        - name: sidecar\n        - name: trainer\n", set + ".spec.template.spec.containers: must be one container"},
		"what pools decide":       {"      containers:\n        - name: trainer\n", "      nodeSelector: {a: b}\n      containers:\n        - name: trainer\n", set + ".spec.template.spec.nodeSelector.a: is not read from a StatefulSet"},
		"another policy":          {"imagePullPolicy: Always", "imagePullPolicy: Never", "[1].spec.template.spec.containers[0].imagePullPolicy: differs from " + container + ".imagePullPolicy"},
		"arguments in one text":   {"args: [/workspace/launch.sh, trainer]", "args: launch.sh", container + `.args: Invalid value: "launch.sh": must be a list`},
		"a quantity that is none": {`memory: "48Gi"`, `memory: "48 G"`, container + ".resources.requests[memory]: "},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(published, c.old, c.with, 1)
			require.NotEqual(t, published, text)
			_, err := loadManifest(t, edits{"persia:jobs[0].name": "clicks"}, inFile(text))
			require.ErrorContains(t, err, c.says)
		})
	}
}
