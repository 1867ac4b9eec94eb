package jobspec_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/internal/stacktest"
)

// TestWarned checks the warnings about jobs that may not do what the user meant.
func TestWarned(t *testing.T) {
	const job, files, variable = "persia:jobs[0]", "persia:jobs[0].persiaEnv.", "persia:jobs[0].env[0]"
	const global, script, loader = files + "PERSIA_GLOBAL_CONFIG", files + "PERSIA_NN_WORKER_ENTRY", files + "PERSIA_DATALOADER_ENTRY"
	below := func(changes edits) edits { // all files on the volume
		return edits{global: "/checkpoints/g.yml", files + "PERSIA_EMBEDDING_CONFIG": "/checkpoints/e.yml", script: "/checkpoints/train.py", loader: "/checkpoints/load.py"}.And(changes)
	}
	on := func(roles ...string) edits { // the volume on some roles only
		changes := edits{job + ".mounts": nil}
		for _, role := range roles {
			changes[job+"."+role+".mounts"] = []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}}
		}
		return changes
	}
	env := func(name, value string) edits { return edits{variable: edits{"name": name, "value": value}} }
	volume := func(source, mount edits) edits {
		return edits{job + ".volumes": []any{edits{"name": "d"}.And(source)}, job + ".dataloader.volumeMounts": []any{edits{"name": "d", "mountPath": "/data"}.And(mount)}}
	}
	shared := func(source edits) edits { // a volume of the job instead of the stack's
		mounts := []any{edits{"name": "d", "mountPath": "/data"}}
		return edits{"persia:storage": []any{}, job + ".mounts": nil, job + ".volumes": []any{edits{"name": "d"}.And(source)},
			job + ".nnWorker.volumeMounts": mounts, job + ".embeddingParameterServer.volumeMounts": mounts}
	}
	bucket := func(attributes edits) edits {
		return volume(edits{"csi": edits{"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": edits{"bucketName": "b"}.And(attributes)}}, nil)
	}
	const attributes = job + ".volumes[0].csi.volumeAttributes"
	secondJob := func(checkpoints string) edits { // a small job beside the first
		small := func(pool string, limits edits) edits {
			return edits{"nodePool": pool, "resources": edits{"limits": limits}}
		}
		return edits{"persia:nodePools[0].nodes": 3, "persia:nodePools[2].nodes": 2, "persia:nodePools[1].autoscaling.maxNodes": 8, "persia:jobs[1]": edits{
			"name": "second", "env": []any{edits{"name": "PERSIA_CKPT_DIR", "value": checkpoints}},
			"persiaEnv": edits{"PERSIA_GLOBAL_CONFIG": "/checkpoints/g.yml", "PERSIA_EMBEDDING_CONFIG": "/checkpoints/e.yml", "PERSIA_NN_WORKER_ENTRY": "/checkpoints/train.py", "PERSIA_DATALOADER_ENTRY": "/checkpoints/load.py"},
			"mounts":    []any{edits{"volume": "checkpoints", "mountPath": "/checkpoints"}},
			"nnWorker":  small("training", edits{"cpu": 8, "memory": "60Gi", "nvidia.com/gpu": 8}), "dataloader": small("loaders", edits{"cpu": 1, "memory": "12Gi"}),
			"embeddingWorker": small("loaders", edits{"cpu": 1, "memory": "12Gi"}), "embeddingParameterServer": small("ps", edits{"cpu": 1, "memory": "12Gi"}),
		}}
	}
	oneGPU := func(name, value string) edits {
		return env(name, value).And(edits{job + ".nnWorker.resources.limits": edits{"cpu": 8, "memory": "60Gi", "nvidia.com/gpu": 1}})
	}
	claim := func(name string) edits { return edits{"persistentVolumeClaim": edits{"claimName": name}} }
	const mount = job + ".dataloader.volumeMounts[0]"
	stacktest.Warned(t, []stacktest.Refusal{
		// Files.
		{"files on the volume", below(edits{}), global, nil},
		{"script below no mount", below(edits{script: "/checkpoint/train.py"}), script, []string{"/checkpoint/train.py is below no mount of nnWorker", "/home/PERSIA", "mountPath"}},
		{"script of an image", below(edits{script: "/checkpoint/train.py", job + ".nnWorker.image": "registry.example.com/nn-worker:1"}), script, nil},
		{"example of upstream's image", below(edits{script: "/home/PERSIA/examples/train.py"}), script, nil},
		{"file of the job's volume", below(volume(claim("checkpoints-claim"), edits{"mountPath": "/data"})).And(edits{loader: "/data/load.py"}), loader, nil},
		{"configuration that a role lacks", below(on("nnWorker", "embeddingWorker", "embeddingParameterServer")), global, []string{"on a volume that dataloader does not mount", "add it to mounts"}},
		{"script that only its role needs", below(on("nnWorker")), script, nil},
		{"one file for both configurations", below(edits{files + "PERSIA_EMBEDDING_CONFIG": "/checkpoints/g.yml"}), files + "PERSIA_EMBEDDING_CONFIG", []string{"is also PERSIA_GLOBAL_CONFIG", "write another file"}},
		{"one file for both scripts", below(edits{loader: "/checkpoints/train.py"}), loader, []string{"is also PERSIA_NN_WORKER_ENTRY"}},
		{"configuration as a script", below(edits{script: "/checkpoints/a.yml"}), script, []string{"does not look like a Python script"}},
		{"script as a configuration", below(edits{global: "/checkpoints/a.py"}), global, []string{"does not look like a YAML file"}},
		{"checkpoints of two jobs in one directory", secondJob("/checkpoints/a").And(env("PERSIA_CKPT_DIR", "/checkpoints/a/")), "persia:jobs[1].env[0].value", []string{"/checkpoints/a is also the directory of persia:jobs[0]", "for each job"}},
		{"checkpoints of two jobs in two directories", secondJob("/checkpoints/b").And(env("PERSIA_CKPT_DIR", "/checkpoints/a")), "persia:jobs[1].env[0].value", nil},
		// Checkpoints.
		{"checkpoints on the job's volume", edits{}, job + ".mounts", nil},
		{"servers without the volume", on("nnWorker"), job + ".mounts", []string{"nnWorker and embeddingParameterServer have no volume in common", "no checkpoint"}},
		{"nn-workers and servers with the volume", on("nnWorker", "embeddingParameterServer"), job + ".mounts", nil},
		{"servers with the volume elsewhere", on("nnWorker").And(edits{job + ".embeddingParameterServer.mounts": []any{edits{"volume": "checkpoints", "mountPath": "/other"}}}), job + ".mounts", []string{"at one path"}},
		{"checkpoints on a bucket of the job", shared(edits{"csi": edits{"driver": "gcsfuse.csi.storage.gke.io"}}), job + ".mounts", nil},
		{"checkpoints on a disk of the job", shared(edits{"gcePersistentDisk": edits{"pdName": "d"}}), job + ".mounts", nil},
		{"checkpoints on a read-only bucket", shared(edits{"csi": edits{"driver": "gcsfuse.csi.storage.gke.io", "readOnly": true}}), job + ".mounts", []string{"begins anew"}},
		{"checkpoints on the volume of each pod", shared(edits{"ephemeral": edits{"volumeClaimTemplate": edits{"spec": edits{"accessModes": []any{"ReadWriteOnce"}, "resources": edits{"requests": edits{"storage": "1Gi"}}}}}}), job + ".mounts", []string{"begins anew"}},
		{"read-only volume", edits{job + ".mounts[0].readOnly": true}, job + ".mounts", []string{"without readOnly"}},
		{"no volume", edits{"persia:storage": []any{}, job + ".mounts": nil}, job + ".mounts", []string{"begins anew"}},
		{"checkpoints in the container", env("PERSIA_CKPT_DIR", "/ckpt"), variable + ".value", []string{"/ckpt is below no volume", "mountPath"}},
		{"checkpoints on the volume", env("PERSIA_CKPT_DIR", "/checkpoints/a"), variable + ".value", nil},
		// Variables.
		{"PATH", env("PATH", "/a"), variable + ".name", []string{"PATH replaces the value of the image", "persia-launcher"}},
		{"modules", env("PYTHONPATH", "/a"), variable + ".name", []string{"modules that the image adds"}},
		{"libraries loaded first", env("LD_PRELOAD", "/a.so"), variable + ".name", []string{"libraries that the image loads first"}},
		{"home", env("HOME", "/a"), variable + ".name", []string{"files of the image's user"}},
		{"libraries", env("LD_LIBRARY_PATH", "/a"), variable + ".name", []string{"the libraries of PyTorch"}},
		{"another NATS", env("PERSIA_NATS_URL", "nats://other:4222"), variable + ".name", []string{"another NATS than its own", "remove it"}},
		{"hidden GPUs", env("CUDA_VISIBLE_DEVICES", "0"), variable + ".value", []string{`"0" hides GPUs of the 8`, "remove it"}},
		{"no GPUs", env("NVIDIA_VISIBLE_DEVICES", "none"), variable + ".value", []string{`"none" hides GPUs of the 8`}},
		{"GPU that is empty", oneGPU("CUDA_VISIBLE_DEVICES", ""), variable + ".value", []string{`"" hides GPUs of the 1`}},
		{"GPU below zero", oneGPU("CUDA_VISIBLE_DEVICES", "-1"), variable + ".value", []string{`"-1" hides GPUs of the 1`}},
		{"one GPU", oneGPU("CUDA_VISIBLE_DEVICES", "0"), variable + ".value", nil},
		{"another metrics gateway", env("PERSIA_METRICS_GATEWAY_ADDR", "gateway:9091"), variable + ".name", []string{"elsewhere than to the job's own gateway", "enableMetrics: false"}},
		{"another metrics gateway instead of the job's", env("PERSIA_METRICS_GATEWAY_ADDR", "gateway:9091").And(edits{job + ".enableMetrics": false}), variable + ".name", nil},
		{"all GPUs", env("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7"), variable + ".value", nil},
		{"hidden GPUs of a role without", edits{job + ".dataloader.env": []any{edits{"name": "CUDA_VISIBLE_DEVICES", "value": ""}}}, job + ".dataloader.env[0].value", nil},
		{"misspelt variable", env("PERSIA_STUCK_SECOND", "7200"), variable + ".name", []string{"did you mean PERSIA_STUCK_SECONDS?"}},
		{"variable of the user's script", env("PERSIA_MODEL_CONFIG", "/a"), variable + ".name", nil},
		{"level of logs", env("LOG_LEVEL", "verbose"), variable + ".value", []string{`"verbose" is no level`, "logLevel"}},
		{"unknown variable in a value", env("A", "/data/$(DATASET)"), variable + ".value", []string{"$(DATASET)", "$$(DATASET)"}},
		{"escaped variable in a value", env("A", "$$(DATASET)"), variable + ".value", nil},
		{"known variable in a value", env("A", "$(REPLICA_INDEX) $(KUBERNETES_SERVICE_HOST) $(date -u)"), variable + ".value", nil},
		{"unknown variable in a sub-path", volume(claim("checkpoints-claim"), edits{"subPathExpr": "$(JOB_ID)"}), mount + ".subPathExpr", []string{"$(JOB_ID)", "add it to env"}},
		{"known variable in a sub-path", volume(claim("checkpoints-claim"), edits{"subPathExpr": "$(REPLICA_INDEX)"}), mount + ".subPathExpr", nil},
		{"braces in a sub-path", volume(claim("checkpoints-claim"), edits{"subPathExpr": "${REPLICA_INDEX}"}), mount + ".subPathExpr", []string{"write parentheses"}},
		{"variable in a fixed sub-path", volume(claim("checkpoints-claim"), edits{"subPath": "$(REPLICA_INDEX)"}), mount + ".subPath", []string{"subPathExpr"}},
		// Volumes.
		{"volume that no role mounts", edits{job + ".volumes": []any{edits{"name": "d", "emptyDir": edits{}}}}, job + ".volumes[0]", []string{"no role mounts the volume d"}},
		{"claim misspelt", volume(claim("checkpoint-claim"), nil), job + ".volumes[0].persistentVolumeClaim.claimName", []string{"did you mean checkpoints-claim?"}},
		{"claim of the user", volume(claim("data"), nil), job + ".volumes[0].persistentVolumeClaim.claimName", nil},
		{"driver that the cluster lacks", volume(edits{"csi": edits{"driver": "nfs.csi.k8s.io"}}, nil), job + ".volumes[0].csi.driver", []string{"nfs.csi.k8s.io is not installed", "persia:storage"}},
		{"misspelt option of a bucket", bucket(edits{"mountOptions": "uid=1000,implict-dirs"}), attributes + "[mountOptions]", []string{"did you mean implicit-dirs?"}},
		{"options of a bucket", bucket(edits{"mountOptions": "uid=1000,implicit-dirs"}), attributes + "[mountOptions]", nil},
		{"misspelt attribute of a bucket", bucket(edits{"mountOption": "uid=1000"}), attributes + "[mountOption]", []string{"did you mean mountOptions?"}},
		{"user of a bucket by name", bucket(edits{"mountOptions": "uid=root"}), attributes + "[mountOptions]", []string{"uid=root needs the number of a user"}},
		{"directory of a bucket with a slash", bucket(edits{"mountOptions": "only-dir=/clicks"}), attributes + "[mountOptions]", []string{"without a leading slash"}},
		{"no directory of a bucket", bucket(edits{"mountOptions": "only-dir="}), attributes + "[mountOptions]", []string{"only-dir= needs a directory"}},
		{"mode of a bucket's files", bucket(edits{"mountOptions": "file-mode=999"}), attributes + "[mountOptions]", []string{"an octal mode"}},
		{"values of a bucket's options", bucket(edits{"mountOptions": "uid=1000,gid=-1,file-mode=0644,only-dir=clicks/a"}), attributes + "[mountOptions]", nil},
		{"directory in memory as large as the memory", volume(edits{"emptyDir": edits{"medium": "Memory", "sizeLimit": "12Gi"}}, nil), job + ".volumes[0].emptyDir.sizeLimit", []string{"12Gi of files in memory", "12Gi that dataloader may use"}},
		{"small directory in memory", volume(edits{"emptyDir": edits{"medium": "Memory", "sizeLimit": "1Gi"}}, nil), job + ".volumes[0].emptyDir.sizeLimit", nil},
		{"checkpoints on each node", shared(edits{"hostPath": edits{"path": "/var/lib/a"}}), job + ".volumes[d]", []string{"is another directory on each node", "persia:storage"}},
		{"file system in capitals", volume(edits{"csi": edits{"driver": "d.example.com", "fsType": "EXT4"}}, nil), job + ".volumes[0].csi.fsType", []string{"write ext4"}},
		{"directory of bytes", volume(edits{"emptyDir": edits{"sizeLimit": "500"}}, nil), job + ".volumes[0].emptyDir.sizeLimit", []string{"500 is less than 1Mi", "10Gi"}},
		// Images and amounts.
		{"image without CUDA", edits{job + ".nnWorker.image": "persiaml/persia-cpu-runtime:1"}, job + ".nnWorker.image", []string{"without CUDA by its name", "nvidia.com/gpu"}},
		{"image with CUDA", edits{job + ".nnWorker.image": "persiaml/persia-cuda-runtime:1"}, job + ".nnWorker.image", nil},
		{"GPUs of a server", edits{job + ".embeddingWorker": edits{"nodePool": "training", "resources": edits{"limits": edits{"cpu": 8, "memory": "20Gi", "nvidia.com/gpu": 1}}},
			"persia:nodePools[0].nodes": 3}, job + ".embeddingWorker.resources", []string{"PERSIA's servers do not use"}},
		{"images that no node pulls", edits{job + ".imagePullPolicy": "Never"}, job + ".imagePullPolicy", []string{"new nodes have none", "write IfNotPresent"}},
		{"idle GPUs", edits{job + ".nnWorker.nprocPerNode": 1}, job + ".nnWorker.nprocPerNode", []string{"leave 7 of 8 GPUs idle"}},
		{"more processes than CPUs", edits{job + ".nnWorker.resources": edits{"limits": edits{"cpu": 80, "memory": "600Gi"}}, job + ".nnWorker.nprocPerNode": 800}, job + ".nnWorker.nprocPerNode", []string{"800 processes share 80 CPUs"}},
		{"millions of shards", edits{job + ".hashmapShards": 100000000}, job + ".hashmapShards", []string{"1000 by default"}},
		{"grace of a second", edits{job + ".dataloader.terminationGracePeriodSeconds": 1}, job + ".dataloader.terminationGracePeriodSeconds", []string{"1 s is too short"}},
		{"directory for an interpreter", edits{job + ".script": edits{"runtime": "/r", "python": "/opt/conda/bin"}}, job + ".script.python", []string{"/opt/conda/bin does not look like an interpreter", "/opt/conda/bin/python3"}},
	})
	stacktest.Refused(t, []stacktest.Refusal{
		{"root for a script", edits{script: "/"}, script, []string{`"/"`, "is a directory"}},
		{"directory for a script", edits{script: "/workspace/train/"}, script, []string{"is a directory"}},
		{"mount for a script", edits{script: "/checkpoints"}, script, []string{`"/checkpoints"`, "is a directory"}},
		{"script with a space at its end", edits{script: "/workspace/train.py "}, script, []string{"has spaces at an end", "write /workspace/train.py"}},
		{"script of a shell variable", edits{script: "/home/${USER}/train.py"}, script, []string{"${USER}", "write parentheses"}},
		{"attempts in words", env("PERSIA_ATTEMPTS", "five"), variable + ".value", []string{`"five"`, "at least 1"}},
		{"file system that is none", volume(edits{"gcePersistentDisk": edits{"pdName": "d", "fsType": "ntfs"}}, nil), job + ".volumes[0].gcePersistentDisk.fsType", []string{`"ntfs"`, "ext4"}},
		{"NFS on the loopback", volume(edits{"nfs": edits{"server": "127.0.0.1", "path": "/a"}}, nil), job + ".volumes[0].nfs.server", []string{"leads each machine to itself"}},
	})
}

// TestTimesAreNumbers checks that the program refuses each variable that the start script would
// exit at.
func TestTimesAreNumbers(t *testing.T) {
	settings, err := os.ReadFile("../../workload/persia/settings.py")
	require.NoError(t, err)
	names := regexp.MustCompile(`(?:seconds\(|number\(environment, )"(PERSIA_[A-Z_]+)"`).FindAllStringSubmatch(string(settings), -1)
	require.NotEmpty(t, names)
	var refused []stacktest.Refusal
	for _, name := range names {
		refused = append(refused, stacktest.Refusal{Name: name[1], Path: "persia:jobs[0].env[0].value", Says: []string{`"1m"`, "number"},
			Edits: edits{"persia:jobs[0].env[0]": edits{"name": name[1], "value": "1m"}}})
	}
	stacktest.Refused(t, refused)
}
