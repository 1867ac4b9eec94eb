package terraform

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
)

const (
	clusterType    tokens.Type = "gcp:container/cluster:Cluster"
	nodePoolType   tokens.Type = "gcp:container/nodePool:NodePool"
	networkType    tokens.Type = "gcp:compute/network:Network"
	subnetworkType tokens.Type = "gcp:compute/subnetwork:Subnetwork"
	routerType     tokens.Type = "gcp:compute/router:Router"
	natType        tokens.Type = "gcp:compute/routerNat:RouterNat"
	diskType       tokens.Type = "gcp:compute/disk:Disk"
	regionDiskType tokens.Type = "gcp:compute/regionDisk:RegionDisk"
	instanceType   tokens.Type = "gcp:filestore/instance:Instance"
	bucketType     tokens.Type = "gcp:storage/bucket:Bucket"
	accountType    tokens.Type = "gcp:serviceaccount/account:Account"
	planType       tokens.Type = "gcp:gkebackup/backupPlan:BackupPlan"
	memberType     tokens.Type = "gcp:projects/iAMMember:IAMMember"
	identityType   tokens.Type = "gcp:projects/serviceIdentity:ServiceIdentity"
	repositoryType tokens.Type = "gcp:artifactregistry/repository:Repository"
	readerType     tokens.Type = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
)

// with returns a copy of inputs with others laid over.
func with(inputs values, over values) values { return google.Clone(overlaid(inputs, over)) }

func overlaid(inputs, over values) values {
	result := values{}
	for name, value := range inputs {
		result[name] = value
	}
	for name, value := range over {
		below, isObject := value.(values)
		old, wasObject := result[name].(values)
		switch {
		case value == nil:
			delete(result, name)
		case isObject && wasObject:
			result[name] = overlaid(old, below)
		default:
			result[name] = value
		}
	}
	return result
}

var network = values{"project": "p", "name": "persia", "autoCreateSubnetworks": false}

var subnetwork = values{
	"project": "p", "region": "us-central1", "name": "persia",
	"network":               "projects/p/global/networks/persia",
	"ipCidrRange":           "10.0.0.0/20",
	"privateIpGoogleAccess": true,
	"secondaryIpRanges": []any{
		values{"rangeName": "pods", "ipCidrRange": "10.4.0.0/14"},
		values{"rangeName": "services", "ipCidrRange": "10.8.0.0/20"},
	},
}

// cluster returns a cluster with the inputs that leave no difference to the answers.
var cluster = values{
	"project": "p", "location": "us-central1", "name": "persia",
	"nodeLocations":         []any{"us-central1-a"},
	"deletionProtection":    false,
	"removeDefaultNodePool": true,
	"initialNodeCount":      1,
	"network":               "projects/p/global/networks/persia",
	"subnetwork":            "projects/p/regions/us-central1/subnetworks/persia",
	"releaseChannel":        values{"channel": "REGULAR"},
	"ipAllocationPolicy":    values{"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"},
	"privateClusterConfig":  values{"enablePrivateNodes": true, "enablePrivateEndpoint": false, "masterIpv4CidrBlock": "172.16.0.0/28"},
	"masterAuthorizedNetworksConfig": values{
		"cidrBlocks": []any{values{"cidrBlock": "203.0.113.0/24", "displayName": "office"}},
	},
	"datapathProvider":      "ADVANCED_DATAPATH",
	"enableShieldedNodes":   true,
	"binaryAuthorization":   values{"evaluationMode": "DISABLED"},
	"securityPostureConfig": values{"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_DISABLED"},
	"databaseEncryption":    values{"state": "DECRYPTED"},
	"clusterAutoscaling":    values{"enabled": false, "autoscalingProfile": "OPTIMIZE_UTILIZATION"},
	"addonsConfig": values{
		"gcePersistentDiskCsiDriverConfig": values{"enabled": true},
		"gcpFilestoreCsiDriverConfig":      values{"enabled": false},
		"gcsFuseCsiDriverConfig":           values{"enabled": true},
	},
	"maintenancePolicy": values{"dailyMaintenanceWindow": values{"startTime": "03:00"}, "maintenanceExclusions": []any{
		values{"exclusionName": "release", "startTime": "2026-12-20T00:00:00Z", "endTime": "2027-01-03T00:00:00Z",
			"exclusionOptions": values{"scope": "NO_MINOR_OR_NODE_UPGRADES"}},
	}},
	"monitoringConfig":       values{"enableComponents": []any{"SYSTEM_COMPONENTS", "STORAGE", "POD", "DCGM"}, "managedPrometheus": values{"enabled": true}},
	"workloadIdentityConfig": values{"workloadPool": "p.svc.id.goog"},
	"costManagementConfig":   values{"enabled": true},
}

// nodePool returns a pool with the inputs that leave no difference to the answers.
var nodePool = values{
	"project": "p", "location": "us-central1", "cluster": "persia", "name": "training",
	"nodeLocations": []any{"us-central1-a"},
	"nodeCount":     2,
	"nodeConfig": values{
		"machineType": "n2-standard-8", "imageType": "COS_CONTAINERD", "diskType": "pd-balanced", "diskSizeGb": 100,
		"labels":                 values{"persia.com/part": "nn-worker"},
		"taints":                 []any{values{"key": "persia.com/dedicated", "value": "training", "effect": "NO_SCHEDULE"}},
		"resourceLabels":         values{"goog-gke-node-pool-provisioning-model": "on-demand"},
		"serviceAccount":         "nodes@p.iam.gserviceaccount.com",
		"oauthScopes":            []any{"https://www.googleapis.com/auth/cloud-platform"},
		"metadata":               values{"disable-legacy-endpoints": "true"},
		"workloadMetadataConfig": values{"mode": "GKE_METADATA"},
		"shieldedInstanceConfig": values{"enableIntegrityMonitoring": true, "enableSecureBoot": true},
		"gvnic":                  values{"enabled": true},
	},
	"management":      values{"autoRepair": true, "autoUpgrade": true},
	"upgradeSettings": values{"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0},
}

// kubelet is a block of a pool that no input of the provider can express, so that a program must
// ignore it.
const kubelet = "nodeConfig.kubeletConfig"

// resourceOfAStack is a resource with a program's inputs.
type resourceOfAStack struct {
	token   tokens.Type
	program values
	ignored []string
}

var resourcesOfAStack = []resourceOfAStack{
	{networkType, network, nil},
	{subnetworkType, subnetwork, nil},
	{routerType, values{"project": "p", "region": "us-central1", "name": "persia", "network": "projects/p/global/networks/persia"}, nil},
	{natType, values{"project": "p", "region": "us-central1", "name": "persia", "router": "persia", "natIpAllocateOption": "AUTO_ONLY",
		"sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES", "logConfig": values{"enable": true, "filter": "ERRORS_ONLY"}}, nil},
	{accountType, values{"project": "p", "accountId": "persia-nodes", "displayName": "Nodes"}, nil},
	{memberType, values{"project": "p", "role": "roles/logging.logWriter", "member": "serviceAccount:persia-nodes@p.iam.gserviceaccount.com"}, nil},
	{identityType, values{"project": "p", "service": "file.googleapis.com"}, nil},
	{repositoryType, values{"project": "p", "location": "us-central1", "repositoryId": "hub", "format": "DOCKER", "mode": "REMOTE_REPOSITORY", "description": "Images",
		"remoteRepositoryConfig": values{"dockerRepository": values{"publicRepository": "DOCKER_HUB"}}}, nil},
	{readerType, values{"project": "p", "location": "us-central1", "repository": "projects/p/locations/us-central1/repositories/hub",
		"role": "roles/artifactregistry.reader", "member": "serviceAccount:persia-nodes@p.iam.gserviceaccount.com"}, nil},
	{clusterType, cluster, nil},
	{nodePoolType, nodePool, []string{kubelet}},
	{planType, values{"project": "p", "name": "persia", "location": "us-central1", "cluster": "projects/p/locations/us-central1/clusters/persia",
		"backupConfig": values{"allNamespaces": true, "includeVolumeData": true, "includeSecrets": true}, "backupSchedule": values{"cronSchedule": "0 4 * * *"},
		"retentionPolicy": values{"backupRetainDays": 7}}, nil},
	{diskType, values{"project": "p", "zone": "us-central1-a", "name": "checkpoints", "type": "pd-ssd", "size": 500, "labels": values{"stack": "dev"},
		"diskEncryptionKey": values{"kmsKeySelfLink": "projects/p/locations/us/keyRings/r/cryptoKeys/k"}}, nil},
	{regionDiskType, values{"project": "p", "region": "us-central1", "replicaZones": []any{"us-central1-a", "us-central1-b"}, "name": "regional", "type": "pd-ssd",
		"size": 500, "labels": values{"stack": "dev"}, "diskEncryptionKey": values{"kmsKeyName": "projects/p/locations/us/keyRings/r/cryptoKeys/k"}}, nil},
	{instanceType, values{"project": "p", "location": "us-central1-a", "name": "share", "tier": "BASIC_SSD", "fileShares": values{"name": "vol1", "capacityGb": 2560},
		"networks": []any{values{"network": "projects/p/global/networks/persia", "modes": []any{"MODE_IPV4"}}}, "labels": values{"stack": "dev"}}, nil},
	{bucketType, values{"project": "p", "name": "checkpoints", "location": "us-central1", "uniformBucketLevelAccess": true, "publicAccessPrevention": "enforced",
		"versioning": values{"enabled": true}, "softDeletePolicy": values{"retentionDurationSeconds": 0}, "labels": values{"stack": "dev"},
		"lifecycleRules": []any{values{"action": values{"type": "Delete"}, "condition": values{"age": 30, "withState": "ANY"}}}}, nil},
}

func TestASecondUpHasNothingToDo(t *testing.T) {
	e := newEngine(t, google.Settings{})
	for _, r := range resourcesOfAStack {
		require.NoError(t, e.up(r.token, r.program, r.ignored...), r.token)
	}
	e.cloud.Requests()
	for _, r := range resourcesOfAStack {
		t.Run(string(r.token.Name()), func(t *testing.T) {
			operation, paths := e.plan(r.token, r.program, r.ignored...)
			assert.Equal(t, "same", operation, paths)
			assert.Empty(t, e.refresh(r.token), "drift")
			operation, paths = e.plan(r.token, r.program, r.ignored...)
			assert.Equal(t, "same", operation, "after a refresh: %v", paths)
		})
	}
	assert.Empty(t, e.cloud.Requests(), "requests that change something")
}
