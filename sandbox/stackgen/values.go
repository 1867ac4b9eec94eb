package stackgen

import (
	"slices"
	"strings"
)

// oddTexts are texts that rules tend to forget.
var oddTexts = []any{
	"", "a", "A", "a-b", "a_b", "a.b", "a/b", "a b", " a", "a:b", "a=b", "-a", "a-", "1", "1a", "true", "~", "*", "%", "$(HOME)", "$(",
	"ä", "名前", "🚀", "a\nb", "a\tb", "a\x00b", "a\u200bb", `"`, `\`, "{{.}}", "..", "../a", "/", "//", "/a", "/a/../b", "/a b", "/ä",
	"example.com/a", "Example.com/A", "kubernetes.io/a", "a/b/c", "metadata.name", "default", "kube-system", "persia", "nats-io",
	"10.0.0.1", "::1", "10.0.0.0/8", "256.1.1.1", "2026-01-01T00:00:00Z", "10s", "-1", "1e3", "0x10", "null", "1Gi",
	strings.Repeat("a", 31), strings.Repeat("a", 40), strings.Repeat("a", 63), strings.Repeat("a", 64),
	strings.Repeat("a", 253), strings.Repeat("a", 254), "/" + strings.Repeat("a", 300), strings.Repeat("ab.", 90) + "c",
	strings.Repeat("a", 5000),
}

// numbers are boundaries.
var numbers = []any{0, 1, 2, 3, 7, 30, 60, 64, 100, 255, 256, 420, 511, 512, 600, 1000, 3600, 23333, 32768, 65535, 65536,
	-1, -2147483648, -2147483649, 2147483647, 2147483648, 4294967296, 4294967297, int64(1) << 53, 1e18, 1e19, 0.5, -0.5}

// quantities are amounts, in the notations that Kubernetes has for them.
var quantities = []any{"1", "2", "100m", "500m", "0.5", "1.5", "1e3", "1Gi", "2Gi", "1Mi", "512Mi", "10Gi", "1Ti", "1G", "1k", "1n", "1u",
	"0", "-1", "-1Gi", "+1", "0.0001", "1024", "1Ki", "8Ei", "16Ei", "9223372036854775807", "9223372036854775808", "1E", "99E", ".5", "1.", 1, 0.5, 2}

var paths = []any{"/data", "/workspace", "/mnt/data", "/var/lib/data", "/home/data/a", "/data/", "/data/a", "/dev/shm", "/opt/persia", "/var/lib/persia", "/tmp", "/data/ä", "/data/a b", "/data/$(A)", "/etc/x", "/run/x"}

var images = []any{"nginx", "nginx:1.27", "busybox", "registry.example.com:5000/a/b:tag",
	"gcr.io/a/b@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "a//b", "A/b", ":tag", "a:", "a@sha256:1", "a b", "ä", "a:b:c", "nginx:" + strings.Repeat("a", 200)}

var names = []any{"a", "data", "train-1", "x", "b2", strings.Repeat("a", 30), strings.Repeat("b", 40), strings.Repeat("c", 63)}

var jobNames = []any{"a", "train-1", "x", strings.Repeat("a", 30), strings.Repeat("c", 36)}

var texts = []any{"a", "b", "some text", "x-1"}

var secretNames = []any{"registry", "a.b", "secret-1"}

var addresses = []any{"10.0.0.2", "203.0.113.7", "192.168.1.1", "255.255.255.255", "010.0.0.1", "fd00::1", "::ffff:10.0.0.2"}

var ranges = []any{"10.0.0.0/20", "10.8.0.0/16", "172.20.0.0/28", "203.0.113.0/24", "192.168.0.0/24", "0.0.0.0/0", "127.0.0.0/8", "169.254.0.0/16", "fd00::/64"}

var hosts = []any{"pedl.example.com", "*.example.com", "example.com", "a.b.c.example.com", "*", "*.com", "10.0.0.1"}

var keyNames = []any{"projects/p/locations/us-central1/keyRings/r/cryptoKeys/k", "projects/p/locations/global/keyRings/r/cryptoKeys/k"}

var modes = []any{0, 256, 292, 420, 511, 512, -1}

// small has the resources of one container, and role has them for a role of a job.
var (
	small = map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}, "requests": map[string]any{"cpu": "100m", "memory": "1Gi"}}
	role  = map[string]any{"resources": small}
)

// tolerations and mounted are whole items of lists, whose parts depend on each other.
var (
	tolerations = []any{
		map[string]any{"key": "example.com/a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10},
		map[string]any{"key": "example.com/a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
		map[string]any{"operator": "Exists"},
	}
	mounted = []any{
		map[string]any{"name": "scratch", "mountPath": "/other", "readOnly": true, "recursiveReadOnly": "Disabled"},
		map[string]any{"name": "scratch", "mountPath": "/other", "subPathExpr": "$(REPLICA_INDEX)"},
		map[string]any{"name": "own", "mountPath": "/other", "mountPropagation": "None"},
	}
)

// usuals are values that some key is usually given: by the key and its definition, or
// by the key alone.
var usuals = map[string][]any{
	"mountPath": paths, "subPath": {"a", "a/b", "a b", "$(A)", "ä", "a:b"}, "subPathExpr": {"a", "$(POD_NAME)", "$(A)/b"},
	"image": images, "masterImage": images, "agentImage": images, "KubernetesImageVolumeSource.reference": images,
	"name": names, "claimName": names, "secretName": secretNames, "claim": names, "runId": names, "Job.name": jobNames, "instance": names, "disk": names,
	"KubernetesEnvVar.name":               {"A", "B_C", "a", "a.b", "a-b", "HOME", "PATH", "_", "LD_PRELOAD", "POD_NAME", "PERSIA_NATS_URL", "LOG_LEVEL"},
	"KubernetesEnvVar.value":              {"", "a", "$(POD_NAME)", "a\nb", "ä", "1"},
	"KubernetesLocalObjectReference.name": secretNames, "KubernetesSecretKeySelector.name": secretNames, "KubernetesConfigMapKeySelector.name": secretNames,
	"KubernetesSecretProjection.name": secretNames, "KubernetesConfigMapProjection.name": secretNames, "KubernetesConfigMapVolumeSource.name": secretNames,
	"KubernetesSecretKeySelector.key": texts[:2], "KubernetesConfigMapKeySelector.key": texts[:2], "KubernetesFileKeySelector.key": {"A"},
	"fieldPath": {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.labels['a']", "metadata.annotations['a.b/c']", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.podIP", "status.podIPs", "status.hostIP", "spec.bogus"},
	"KubernetesObjectFieldSelector.apiVersion": {"v1", "v2"},
	"KubernetesResourceFieldSelector.resource": {"limits.cpu", "requests.memory", "limits.memory", "limits.ephemeral-storage", "requests.nvidia.com/gpu", "limits.bogus", "cpu"},
	"containerName": {"", "nn-worker", "dataloader", "a"}, "divisor": {"0", "1", "1m", "1Mi", "3"},
	"operator":                    {"Exists", "Equal", "In", "NotIn", "DoesNotExist"},
	"KubernetesToleration.effect": {"NoSchedule", "NoExecute", "PreferNoSchedule", ""}, "KubernetesToleration.key": {"a", "example.com/a", "nvidia.com/gpu"},
	"tolerationSeconds": {0, 1, 300, -1}, "mountPropagation": {"None", "HostToContainer", "Bidirectional", "Both"},
	"recursiveReadOnly": {"Disabled", "IfPossible", "Enabled", "x"},
	"medium":            {"", "Memory", "HugePages", "HugePages-2Mi", "Disk"}, "fsType": {"ext4", "xfs", "ext3"},
	"mode": modes, "defaultMode": modes, "KubernetesHostPathVolumeSource.type": {"", "Directory", "DirectoryOrCreate", "Socket", "Folder"},
	"KubernetesHostPathVolumeSource.path": paths, "HostPath.path": paths, "NFS.path": paths, "KubernetesNFSVolumeSource.path": paths,
	"KubernetesKeyToPath.path": {"a", "a/b"}, "KubernetesKeyToPath.key": {"a", "a.b"}, "KubernetesDownwardAPIVolumeFile.path": {"a", "labels"},
	"KubernetesServiceAccountTokenProjection.path": {"token"}, "KubernetesClusterTrustBundleProjection.path": {"ca.crt"}, "KubernetesFileKeySelector.path": {"a.env"},
	"audience": {"a"}, "expirationSeconds": {600, 3600, 599, 4294967297}, "accessModes": {"ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"},
	"signerName": {"example.com/a", "kubernetes.io/kube-apiserver-client"}, "keyType": {"ED25519", "RSA3072", "ECDSAP256", "DSA"}, "maxExpirationSeconds": {3600, 86400, 1}, "credentialBundlePath": {"a.pem"}, "keyPath": {"key.pem"}, "certificateChainPath": {"chain.pem"},
	"storageClassName": {"standard", "premium-rwo", ""}, "storageClass": {"standard", "premium-rwo"}, "existingClaim": {"data"}, "volumeMode": {"Filesystem", "Block"}, "volumeAttributesClassName": {"a"},
	"server": {"10.0.0.2", "nfs.example.com"}, "targetPortal": {"10.0.0.2:3260", "10.0.0.2"}, "iqn": {"iqn.2001-04.com.example:checkpoints", "eui.0123456789abcdef"}, "lun": {0, 1, 255, 256}, "portals": {"10.0.0.3:3260"}, "initiatorName": {"iqn.2001-04.com.example:me", "x"},
	"pullPolicy": {"Always", "IfNotPresent", "Never"}, "KubernetesCSIVolumeSource.driver": {"nfs.csi.k8s.io", "a.b"}, "CSI.driver": {"nfs.csi.k8s.io", "a.b"}, "KubernetesFlexVolumeSource.driver": {"a/b"},
	"volumeHandle": {"a", "b/c"}, "mountOptions": {"implicit-dirs", "ro", "vers=4", "a,b"},
	"terminationGracePeriodSeconds": {1, 30, 60, 600, 3600}, "nprocPerNode": {1}, "replicas": {1, 2, 3},
	"kind": {"PersistentVolumeClaim", "VolumeSnapshot"}, "apiGroup": {"", "snapshot.storage.k8s.io"},
	"python": {"/usr/bin/python3"}, "runtime": {"/workspace/bin", "/opt/runtime"},
	"PERSIA_GLOBAL_CONFIG": paths, "PERSIA_EMBEDDING_CONFIG": paths, "PERSIA_NN_WORKER_ENTRY": paths, "PERSIA_DATALOADER_ENTRY": paths,
	"globalConfigPath": paths, "embeddingConfigPath": paths, "trainerPyEntryPath": paths, "nnWorkerPyEntryPath": paths, "dataLoaderPyEntryPath": paths,
	"manifest":  {"adult-income.yml"},
	"resources": {small}, "Job.nnWorker": {role}, "Job.dataloader": {role}, "Job.embeddingWorker": {role}, "Job.embeddingParameterServer": {role},
	"config.persia:pedl": {map[string]any{"resources": small, "registry": map[string]any{"password": "word"},
		"postgresql": map[string]any{"postgresqlPassword": "word", "resources": small}}},
	// The cluster.
	"config.persia:project": {"my-project", "other-project"},
	"region":                {"us-central1"}, "zones": {"us-central1-a", "us-central1-b"}, "Cluster.name": {"a", "persia-2", strings.Repeat("a", 24)},
	"cidr": ranges, "Network.nodes": {"10.0.0.0/20", "10.128.0.0/20"}, "Network.pods": {"10.64.0.0/14", "10.64.0.0/16"}, "Network.services": {"10.1.0.0/20", "10.1.0.0/24"}, "controlPlane": {"172.20.0.0/28"},
	"start": {"2026-12-01T00:00:00Z"}, "end": {"2026-12-20T00:00:00Z"}, "startTime": {"04:00"},
	"secrets": keyNames, "bootDisks": keyNames, "kmsKey": keyNames, "context": {"shared", "a"}, "kubeconfig": {"/tmp/kubeconfig"}, "systemPool": {"default-pool"},
	"components": {"SYSTEM_COMPONENTS", "POD", "DCGM"}, "SystemPool.machineType": {"e2-standard-4", "e2-standard-8"}, "SystemPool.nodes": {2, 3},
	"machineType": {"g2-standard-32", "n2-standard-8", "n2-standard-32", "n1-standard-16", "a2-highgpu-1g", "e2-standard-8"}, "Pool.nodes": {1, 2, 4}, "minNodes": {0, 1}, "maxNodes": {2, 4, 8},
	"Pool.taints": {}, "Taint.key": {"example.com/a", "a"}, "Taint.value": {"a", ""}, "maxPodsPerNode": {32, 64, 110}, "reservation": {"a"}, "localSsdCount": {1, 2}, "sizeGb": {100, 200}, "Disk.type": {"pd-balanced", "pd-ssd"},
	"GPU.type": {"nvidia-l4", "nvidia-tesla-t4", "nvidia-tesla-v100"}, "GPU.count": {1, 4}, "partition": {"1g.5gb"}, "maxSurge": {0, 1}, "maxUnavailable": {0, 1},
	"cpus": {4, 8}, "MachineType.memory": {"16Gi", "64Gi"}, "hourlyPrice": {0.5, 1}, "spotHourlyPrice": {0.1}, "hoursBetweenFailures": {500, 1000}, "spotHoursBetweenFailures": {24}, "checkpointSeconds": {60, 300}, "restartSeconds": {300, 600}, "MachineGPU.type": {"nvidia-l4"}, "MachineGPU.count": {1}, "NVIDIADriver.version": {"DEFAULT", "LATEST", "550.90.12"},
	"KubernetesOwnerReference.uid": {"1"}, "KubernetesObjectMeta.uid": {"1"}, "creationTimestamp": {"2026-01-01T00:00:00Z"}, "deletionTimestamp": {"2026-01-01T00:00:00Z"}, "KubernetesManagedFieldsEntry.time": {"2026-01-01T00:00:00Z"},
	"PEDLAgent.tolerations": tolerations, "PEDL.tolerations": tolerations, "Role.volumeMounts": mounted, "NNWorker.volumeMounts": mounted,
	"Cache.registry": {"ghcr.io", "quay.io", "registry.example.com"}, "Cache.repository": {"us-central1-docker.pkg.dev/my-project/images"}, "passwordSecret": {"projects/p/secrets/s/versions/1"}, "username": {"a"},
	// Volumes.
	"Volume.size": {"10Gi", "100Gi", "1Ti", "2Ti"}, "size": {"10Gi", "100Gi"}, "NATS.size": {1, 3}, "NATSOverrides.size": {1, 3}, "bucket": {"my-bucket", "my-project-a"}, "Filestore.location": {"us-central1-a"}, "location": {"us-central1", "US", "NAM4"}, "softDeleteDays": {0, 7, 30}, "prefix": {"checkpoints/"}, "afterDays": {7, 30}, "newerVersions": {0, 1},
	"deleteWithStack": names, "tier": {"BASIC_SSD", "ZONAL"}, "share": {"vol1"}, "project": {"my-project"},
	// NATS.
	"NATS.name": {"broker", "nats"}, "NATS.version": {"2.10.22", "2.10"}, "NATS.image": {"nats", "registry.example.com/nats"}, "maxPayload": {1048576, 52428800}, "password": {"word-1", "secret"},
	// PEDL.
	"port": {80, 8080, 5432, 23333}, "nodePort": {30000, 32767}, "externalIPs": addresses, "clusterIP": addresses, "loadBalancerIP": addresses, "loadBalancerSourceRanges": ranges,
	"hosts": hosts, "host": {"10.0.0.5", "db.example.com"}, "user": {"postgres", "a"}, "database": {"pedl"}, "network": {"default", "host", "bridge"}, "uid": {0, 1000}, "gid": {0, 1000}, "email": {"a@example.com"}, "postgresqlPassword": {"word"}, "postgresqlDatabase": {"pedl"}, "postgresqlInitdbArgs": {"--data-checksums"}, "schedulerName": {"default-scheduler", "other"},
	"PEDLRegistry.server": {"https://index.docker.io/v1/", "registry.example.com"}, "registry": {"docker.io", "registry.example.com:5000"}, "repository": {"bitnami/postgresql"}, "tag": {"10.8.0"}, "annotations": {"a", "true"}, "nodeSelector": {"a", "true"}, "labels": {"a", "b"}, "attributes": {"a"}, "matchLabels": {"a"}, "postgresqlExtendedConfig": {100, "128MB", true}, "limits": {"1", "2", "1Gi", "2Gi"}, "requests": {"1", "100m", "1Gi"},
}

// usualEntries are the usual keys of some maps.
var usualEntries = map[string][]string{
	"limits": {"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "example.com/a"}, "requests": {"cpu", "memory", "ephemeral-storage", "storage"},
	"labels": {"a", "example.com/a", "team"}, "annotations": {"a", "example.com/a", "Example.com/A"}, "nodeSelector": {"a", "example.com/a", "kubernetes.io/arch"}, "matchLabels": {"a"},
	"persia:machineTypes": {"g2-standard-32", "x9-standard-8", "n2-standard-8"}, "postgresqlExtendedConfig": {"maxConnections", "sharedBuffers"}, "attributes": {"a", "b"},
}

// needed are keys that a definition needs although the schema does not say so by
// itself.
var needed = map[string][]string{
	"PEDL": {"postgresql", "registry"}, "PostgreSQL": {"postgresqlPassword"}, "KubernetesSecretKeySelector": {"name"}, "KubernetesConfigMapKeySelector": {"name"},
	"KubernetesLocalObjectReference": {"name"}, "KubernetesConfigMapVolumeSource": {"name"}, "KubernetesSecretVolumeSource": {"secretName"}, "KubernetesEphemeralVolumeSource": {"volumeClaimTemplate"},
	"KubernetesPersistentVolumeClaimSpec": {"accessModes", "resources"}, "KubernetesVolumeResourceRequirements": {"requests"}, "KubernetesImageVolumeSource": {"reference"},
	"KubernetesClusterTrustBundleProjection": {"name"}, "KubernetesPodCertificateProjection": {"signerName", "keyType", "credentialBundlePath"}, "CreateBucket": {}, "CreateDisk": {}, "CreateFilestore": {}, "Encryption": {},
}

// oneOf are the keys of definitions that want exactly one of them.
var oneOf = map[string][]string{
	"Volume":                     sources,
	"Persistence":                append([]string{"existingClaim", "storageClass"}, sources...),
	"KubernetesEnvVar":           {"value", "valueFrom"},
	"KubernetesEnvVarSource":     {"secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef"},
	"KubernetesVolumeProjection": {"secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"},
	"KubernetesVolume": {"emptyDir", "hostPath", "secret", "configMap", "persistentVolumeClaim", "nfs", "downwardAPI", "projected", "csi", "ephemeral", "image", "iscsi", "fc",
		"gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "flexVolume", "flocker", "gitRepo", "glusterfs", "photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"},
}

// named are the keys whose values name something else of the stack.
var named = map[string]Key{
	"nodePool":                        {"Pool", "name"},
	"nodePools":                       {"Pool", "name"},
	"Mount.volume":                    {"Volume", "name"},
	"CreateBucket.deleteWithStack":    {"GCSFuse", "bucket"},
	"CreateDisk.deleteWithStack":      {"PersistentDisk", "disk"},
	"CreateFilestore.deleteWithStack": {"Filestore", "instance"},
	"KubernetesVolumeMount.name":      {"KubernetesVolume", "name"},
}

// sources are the sources of volumes.
var sources = []string{"gcsFuse", "nfs", "csi", "persistentDisk", "filestore", "hostPath", "iscsi"}

// excluding are keys that rule out some or all of the others.
var excluding = map[string][]string{
	"PostgreSQL.external":               {},
	"KubernetesVolumeMount.subPath":     {"subPathExpr"},
	"KubernetesVolumeMount.subPathExpr": {"subPath"},
	"Pool.nodes":                        {"autoscaling"},
	"Pool.autoscaling":                  {"nodes"},
}

// sameRole returns the names of a role of a job, including the names in older releases.
func sameRole(key Key) []string {
	for _, names := range [][]string{
		{"nnWorker", "trainer"},
		{"embeddingWorker", "middlewareServer", "middleware_server"},
		{"embeddingParameterServer", "embeddingServer", "embedding_server"},
	} {
		if key.Definition == "Job" && slices.Contains(names, key.Property) {
			return names
		}
	}
	return nil
}

// olderPaths maps the keys of older releases to the keys of persiaEnv.
var olderPaths = map[string]string{
	"globalConfigPath": "PERSIA_GLOBAL_CONFIG", "embeddingConfigPath": "PERSIA_EMBEDDING_CONFIG",
	"trainerPyEntryPath": "PERSIA_NN_WORKER_ENTRY", "nnWorkerPyEntryPath": "PERSIA_NN_WORKER_ENTRY",
	"dataLoaderPyEntryPath": "PERSIA_DATALOADER_ENTRY",
}

// usual returns the usual values of a key, and existing names for a key that refers to something in
// the stack.
func (m *maker) usual(key Key) []any {
	for _, name := range []string{key.String(), key.Property} {
		if other, ok := named[name]; ok {
			var there []any
			for _, object := range m.find(other.Definition) {
				there = append(there, object[other.Property])
			}
			return there
		}
		if values := usuals[name]; len(values) > 0 {
			return values
		}
	}
	return nil
}
