package persia_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes/fake"

	"persia/internal/programtest"
	"persia/internal/status"
	"persia/internal/testkit"
)

// deploy runs the program over an edited stack: dev, prod, or operator, whose job is left to PERSIA's operator.
func deploy(t *testing.T, stack string, edits testkit.Edits) *testkit.Recorder {
	t.Helper()
	switch stack {
	case "operator":
		return programtest.MustDeploy(t, programtest.LeftToOperator(t, edits))
	case "existing", "queues":
		return programtest.MustDeploy(t, programtest.ReadStack(t, "examples/Pulumi."+stack+".yaml", edits))
	default:
		return programtest.MustDeploy(t, programtest.ReadStack(t, "Pulumi."+stack+".yaml", edits))
	}
}

// TestFields checks what settings become that the stack files of the repository lack: the golden plans show the others.
func TestFields(t *testing.T) {
	const job, nnWorker, dataloader = "persia:jobs[0].", "StatefulSet adult-income-nn-worker", "StatefulSet adult-income-dataloader"
	type edits = testkit.Edits
	type list = []any
	type object = map[string]any
	memory := edits{job + "volumes": list{object{"name": "memory", "emptyDir": object{"medium": "Memory"}}, object{"name": "data", "nfs": object{"server": "10.0.0.2", "path": "/"}}}}
	env := func(name, value string) string { return `{"name":"` + name + `","value":"` + value + `"}` }
	checkpoints := func(readOnly bool) list {
		return list{object{"volume": "checkpoints-vol", "mountPath": "/checkpoints", "readOnly": readOnly}}
	}
	writers := edits{job + "mounts": nil, job + "nnWorker.mounts": checkpoints(false), job + "embeddingParameterServer.mounts": checkpoints(false)}
	longest := strings.Repeat("j", 35)
	more := func(volume edits) edits {
		return edits{"persia:storage[1]": edits{"name": "more", "claim": "more-pvc", "size": "1Ti"}.And(volume)}
	}
	mounted := more(edits{"gcsFuse": object{"bucket": "some-bucket", "sidecar": object{"cpu": "500m"}}}).And(edits{job + "dataloader.mounts": list{
		object{"volume": "more", "mountPath": "/data", "readOnly": true}, object{"volume": "checkpoints-vol", "mountPath": "/again", "readOnly": true},
	}})
	for name, test := range map[string]struct {
		stack    string
		edits    edits
		resource string
		// has are parts of the resource as JSON, which after "not " it lacks. Without any, it is not there.
		has []string
	}{
		"pull secrets":    {"dev", edits{job + "imagePullSecrets": list{object{"name": "registry"}}}, nnWorker, []string{`"imagePullSecrets":[{"name":"registry"}]`}},
		"the time to end": {"dev", edits{job + "nnWorker.terminationGracePeriodSeconds": 600}, nnWorker, []string{`"terminationGracePeriodSeconds":600`}},
		"the job's own shared memory": {"dev", memory.And(edits{job + "nnWorker.volumeMounts": list{object{"name": "memory", "mountPath": "/dev/shm/"}}}), nnWorker,
			[]string{`"mountPath":"/dev/shm/"`, `not "mountPath":"/dev/shm",`, `not "name":"shared-memory"`}},
		"the job's own shared memory with PERSIA's operator": {"operator", memory.And(edits{job + "nnWorker.volumeMounts": list{object{"name": "memory", "mountPath": "/dev/shm/"}}}), "PersiaJob criteo",
			[]string{`{"mountPath":"/dev/shm/","name":"memory"},{"mountPath":"/opt/persia","name":"launch","readOnly":true}]`}},
		"folders for temporary files that outlive the pod": {"dev", memory.And(edits{job + "nnWorker.volumeMounts": list{
			object{"name": "memory", "mountPath": "/dev/shm"}, object{"name": "data", "mountPath": "/tmp/"},
		}}), nnWorker, []string{env("PERSIA_SCRATCH", "/dev/shm")}},
		"no volume to write to": {"dev", edits{job + "mounts[0].readOnly": true}, nnWorker,
			[]string{env("PERSIA_STATE_DIR", "/var/lib/persia/adult-income/1"), "not PERSIA_CKPT_ROOT"}},
		"embedding workers that cannot load": {"dev", writers, nnWorker,
			[]string{env("PERSIA_STATE_DIR", "/checkpoints/.persia/adult-income/1"), "not PERSIA_CKPT_ROOT"}},
		"embedding workers that only load": {"dev", writers.And(edits{job + "embeddingWorker.mounts": checkpoints(true)}), nnWorker, []string{env("PERSIA_CKPT_ROOT", "/checkpoints/adult-income/1")}},
		"another run": {"dev", edits{job + "runId": "second"}, nnWorker,
			[]string{env("PERSIA_RUN", "second"), env("PERSIA_STATE_DIR", "/checkpoints/.persia/adult-income/second"), env("PERSIA_CKPT_ROOT", "/checkpoints/adult-income/second")}},
		"a server that keeps its memory": {"dev", edits{job + "recovery": "partial"}, "StatefulSet adult-income-embedding-ps",
			[]string{env("PERSIA_SERVER", "127.0.0.1:8888"), `\"partial\":true`}},
		"the coordinator of servers that keep their memory": {"dev", edits{job + "recovery": "partial"}, nnWorker, []string{env("PERSIA_RECOVERY", "partial"), "not PERSIA_SERVER"}},
		"variables of the job and its role, which win": {"dev", edits{
			job + "env":          list{object{"name": "RUST_BACKTRACE", "value": "job"}, object{"name": "NCCL_DEBUG", "value": "job"}},
			job + "nnWorker.env": list{object{"name": "NCCL_DEBUG", "value": "role"}},
		}, nnWorker, []string{env("RUST_BACKTRACE", "job"), env("NCCL_DEBUG", "role"), "not " + env("RUST_BACKTRACE", "full"), "not " + env("NCCL_DEBUG", "job"), "not " + env("NCCL_DEBUG", "INFO")}},
		"machines that are measured":     {"dev", nil, dataloader, []string{`{"name":"PERSIA_NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}`}},
		"machines that are not measured": {"dev", edits{job + "checks": false}, dataloader, []string{"not PERSIA_NODE"}},
		"without metrics":                {"dev", edits{job + "enableMetrics": false}, dataloader, []string{"not PERSIA_METRICS_GATEWAY_ADDR", "not PERSIA_REPLICA_METRICS"}},
		"no gateway without metrics":     {"dev", edits{job + "enableMetrics": false}, "Deployment adult-income-metrics-gateway", nil},
		"no metrics of scripts with PERSIA's operator": {"operator", edits{job + "enableMetrics": false}, "PersiaJob criteo",
			[]string{`"enableMetrics":false`, "not PERSIA_REPLICA_METRICS"}},
		"a trainer of an older release": {"dev", edits{job + "script": object{"runtime": "/workspace/runtime"}}, nnWorker,
			[]string{`"args":["/bin/bash","/opt/persia/roles.sh","trainer"]`, `"command":["/opt/conda/bin/python3","/opt/persia/launch.py"]`, env("PERSIA_PYTHON", "/opt/conda/bin/python3"), env("PERSIA_PORT", "23333")}},
		"a server of an older release": {"dev", edits{job + "script": object{"runtime": "/workspace/runtime"}}, "StatefulSet adult-income-embedding-ps",
			[]string{`roles.sh","embserver"`, `"containerPort":23333`, `/dev/tcp/127.0.0.1/23333`, env("PERSIA_RUNTIME", "/workspace/runtime")}},
		"a suspended job": {"dev", edits{job + "suspend": true}, nnWorker, []string{`"replicas":0`, env("REPLICA_SIZE", "1")}},
		"a suspended job of PERSIA's operator": {"operator", edits{job + "suspend": true}, "PersiaJob criteo",
			[]string{`"enableMetrics":false`, `"replicas":0,"resources"`, `not "replicas":8`, `not "replicas":1`}},
		"a suspended job of PERSIA's operator has no end":   {"operator", edits{job + "suspend": true}, "Job criteo-completion", nil},
		"a job whose pods start again and again has no end": {"operator", edits{job + "restartPolicy": "Always"}, "Job criteo-completion", nil},
		"cached images with PERSIA's operator": {"operator", edits{"persia:images.caches": list{object{"registry": "docker.io"}}}, "PersiaJob criteo",
			[]string{`"image":"` + programtest.ProdCache + `persiaml/persia-cuda-runtime:latest"`, `"image":"` + programtest.ProdCache + `persiaml/persia-cpu-runtime:latest"`}},
		"directories of nodes, which baseline forbids": {"dev", edits{job + "volumes": list{object{"name": "data", "hostPath": object{"path": "/data"}}}}, "Namespace persia",
			[]string{`"pod-security.kubernetes.io/enforce":"privileged"`}},
		"the longest name, which nothing cuts":     {"dev", edits{job + "name": longest}, "StatefulSet " + longest + "-embedding-worker", []string{`"name":"` + longest + `-embedding-worker"`}},
		"a JobSet":                                 {"prod", edits{job + "engine": "jobset"}, "JobSet criteo", []string{`"suspend":false`, `"targetReplicatedJobs":["nn-worker"]`, `"succeededIndexes":"0"`, env("PERSIA_ONCE", "1")}},
		"a suspended JobSet":                       {"prod", edits{job + "engine": "jobset", job + "suspend": true}, "JobSet criteo", []string{`"suspend":true`, `"parallelism":8`}},
		"a gateway with a JobSet":                  {"prod", edits{job + "engine": "jobset"}, "Job criteo-completion", []string{`"PERSIA_GATEWAY_PORT"`, `"prom":"criteo"`, `"readinessProbe"`}},
		"no Deployment of a gateway with a JobSet": {"prod", edits{job + "engine": "jobset"}, "Deployment criteo-metrics-gateway", nil},
		"no gateway with a JobSet without metrics": {"prod", edits{job + "engine": "jobset", job + "enableMetrics": false}, "Job criteo-completion", []string{`not "PERSIA_GATEWAY_PORT"`, `not "prom"`}},
		"no Managed Service for Prometheus":        {"prod", edits{"persia:cluster.monitoring": object{"managedPrometheus": false}}, "PodMonitoring persia", nil},
		"alerts of Managed Service for Prometheus": {"prod", edits{"persia:nats.metrics": true}, "Rules persia-nats-service", []string{`"alert":"PersiaNATSSlowConsumer"`}},
		"alerts of the Prometheus Operator":        {"existing", edits{"persia:cluster.existing.prometheusOperator": true}, "PrometheusRule persia", []string{`"alert":"PersiaJobFailed"`}},
		"the newest driver of GKE":                 {"dev", edits{"persia:nvidiaDriver.version": "LATEST"}, "NodePool persia-dev-gpu", []string{`"gpuDriverVersion":"LATEST"`}},
		"a version of the driver":                  {"prod", edits{"persia:nvidiaDriver.version": "550.90.12"}, "DaemonSet nvidia-driver", []string{env("NVIDIA_DRIVER_VERSION", "550.90.12")}},
		"mounts of the job, and of a role": {"dev", mounted, dataloader, []string{
			`{"name":"claim-0","persistentVolumeClaim":{"claimName":"checkpoints-pvc"}},{"name":"claim-1","persistentVolumeClaim":{"claimName":"more-pvc","readOnly":true}}`,
			`{"mountPath":"/checkpoints","name":"claim-0"},{"mountPath":"/data","name":"claim-1","readOnly":true},{"mountPath":"/again","name":"claim-0","readOnly":true}`,
			`"gke-gcsfuse/cpu-request":"500m"`, `"gke-gcsfuse/ephemeral-storage-request":"5368709120"`,
		}},
		"a role without the mounts of another": {"dev", mounted, nnWorker, []string{`"claimName":"checkpoints-pvc"`, "not more-pvc", "not gke-gcsfuse/volumes"}},
		"a volume that its driver deletes": {"dev", more(edits{"csi": object{"driver": "d.example.com", "volumeHandle": "h"}, "reclaimPolicy": "Delete"}), "PersistentVolume more",
			[]string{`"persistentVolumeReclaimPolicy":"Delete"`, `"annotations":{"pv.kubernetes.io/provisioned-by":"d.example.com"}`}},
		"all settings of NATS": {"prod", edits{"persia:nats": object{
			"name": "broker", "size": 5, "version": "2.10.20", "image": "registry.example.com/nats", "maxPayload": 1048576, "nodePool": "nats",
			"antiAffinity": true, "metrics": true, "resources": object{"limits": object{"cpu": "4", "memory": "8Gi"}},
		}}, "NatsCluster broker", []string{
			`"name":"broker"`, `"maxPayload":1048576,"maxPending":4194304`, `"resources":{"limits":{"cpu":"4","memory":"8Gi"}}`,
			`"antiAffinity":true,"enableMetrics":true,"metricsImage":"` + programtest.ProdCache + `natsio/prometheus-nats-exporter","metricsImageTag":"0.15.0"`,
			`"serverImage":"registry.example.com/nats","size":5`, `"nats_cluster":"broker"`, `"version":"2.10.20"`,
		}},
		"jobs in queues that lack replicas": {"queues", edits{"persia:queue.startMinutes": 20}, "ConfigMap kueue",
			[]string{`\n  timeout: 20m\n  recoveryTimeout: 20m\n`, "not backoffLimitCount"}},
		"queues whose jobs stop for none": {"queues", edits{"persia:queue.withinTeam": "Never", "persia:queue.betweenTeams": "Never"}, "ClusterQueue queues-ads",
			[]string{`"borrowWithinCohort":{"policy":"Never"},"reclaimWithinCohort":"Never","withinClusterQueue":"Never"`}},
		"queues before jobs, because the API server refuses a group of resources without a flavor": {"queues",
			edits{"persia:jobs": list{}, "persia:queue.teams[0].nodes": nil}, "ClusterQueue queues-ads", []string{"not resourceGroups"}},
		"queues for all that jobs request": {"existing", edits{
			"persia:queue.teams": list{object{"name": "ads"}}, job + "engine": "jobset", job + "queue": "ads",
			job + "nnWorker.resources.limits": object{"cpu": 8, "memory": "48Gi", "nvidia.com/gpu": 1, "example.com/fpga": 1, "ephemeral-storage": "5Gi"},
		}, "ClusterQueue queues-ads", []string{
			`"coveredResources":["cpu","memory","nvidia.com/gpu","ephemeral-storage","example.com/fpga"]`,
			`{"name":"ephemeral-storage","nominalQuota":"10Gi"},{"name":"example.com/fpga","nominalQuota":"2"}`,
		}},
		"the same service for NATS": {"prod", edits{"persia:nats.metrics": true}, "PodMonitoring persia-nats-service",
			[]string{`"endpoints":[{"interval":"15s","port":7777}]`, `"matchLabels":{"app":"nats","nats_cluster":"persia-nats-service"}`, `"namespace":"nats-io"`}},
		"no such service for NATS": {"prod", edits{"persia:cluster.monitoring": object{"managedPrometheus": false}, "persia:nats.metrics": true}, "PodMonitoring persia-nats-service", nil},
	} {
		t.Run(name, func(t *testing.T) {
			kind, resource, _ := strings.Cut(test.resource, " ")
			found := ""
			for _, r := range deploy(t, test.stack, test.edits).Resources {
				if strings.HasSuffix(r.TypeToken, ":"+kind) && r.Name == resource {
					found = strings.ReplaceAll(string(testkit.Must(json.Marshal(r.Inputs.Mappable()))(t)), `\u0026`, "&")
				}
			}
			assert.Equal(t, len(test.has) > 0, found != "", "there is a %s", test.resource)
			for _, part := range test.has {
				lacks, not := strings.CutPrefix(part, "not ")
				assert.Equal(t, !not, strings.Contains(found, lacks), "%s: %s", part, found)
			}
		})
	}
}

const completion = "kubernetes:batch/v1:Job"

// TestOneCompletion: a change of a job replaces its completion, so that a failed job gets another chance. The old
// one goes first, at once, and the new one has its name.
func TestOneCompletion(t *testing.T) {
	for name, edit := range map[string]testkit.Edits{
		"operator": {"persia:jobs[0].logLevel": "debug"},
		"dev":      {"persia:jobs[0].nnWorker.image": "persiaml/persia-cuda-runtime:next"},
	} {
		t.Run(name, func(t *testing.T) {
			first, other := deploy(t, name, nil), deploy(t, name, edit)
			was, is := first.All(t, completion)[0], other.All(t, completion)[0]
			assert.Equal(t, testkit.At(t, was, "metadata.name"), was.Name)
			assert.Equal(t, testkit.At(t, was, "metadata"), testkit.At(t, is, "metadata"))
			assert.NotEqual(t, testkit.At(t, was, "spec"), testkit.At(t, is, "spec"))
			assert.True(t, is.RegisterRPC.GetDeleteBeforeReplace())
			assert.Equal(t, []string{"spec"}, is.RegisterRPC.GetReplaceOnChanges())
			assert.Equal(t, "background", testkit.At(t, was, `metadata.annotations["pulumi.com/deletionPropagationPolicy"]`))
		})
	}
}

// TestStatusOfEachEngine: whichever engine runs a job, the command status finds its completion, among other Kubernetes Jobs
// with the job's label, and reads the plan's prediction from it.
func TestStatusOfEachEngine(t *testing.T) {
	for engine, configuration := range map[string]map[string]string{
		"statefulset": programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{
			"persia:jobs[0].checkpointSeconds": 360, "persia:machineTypes": testkit.Edits{"a2-highgpu-8g": testkit.Edits{"hoursBetweenFailures": 100}}}),
		"jobset":   programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{"persia:jobs[0].engine": "jobset"}),
		"operator": programtest.LeftToOperator(t),
	} {
		job := testkit.Object[batchv1.Job](t, programtest.MustDeploy(t, configuration).One(t, "kubernetes:batch/v1:Job", "criteo-completion"))
		t.Run(engine, func(t *testing.T) {
			server := job.DeepCopy()
			server.Name, server.Labels["app.kubernetes.io/name"] = "criteo-embedding-ps-0", "embedding-ps"
			all := testkit.Must(status.List(t.Context(), fake.NewClientset(&job, server)))(t)
			require.Len(t, all, 1)
			assert.Equal(t, "criteo", all[0].Job)
			assert.Equal(t, map[string]string{"statefulset": "87%"}[engine], all[0].Predicted)
		})
	}
}
