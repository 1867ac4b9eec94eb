package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/config/input"
	"persia/internal/testkit"
)

// TestCases checks what the program says of stack files after public reports of users of GKE, PERSIA, and
// Cloud Storage FUSE. The eighteenth, other mount options of a running job, is a row of TestEffects in sandbox/gcp.
func TestCases(t *testing.T) {
	const job, work = "persia:jobs[0]", "persia:storage[0].mountOptions"
	for folder, says := range map[string][]string{
		"01-no-authorized-networks":              {"persia:cluster.authorizedNetworks: is empty, so that only machines in the network clicks can connect to the control plane", "add the public address that you connect from"},
		"02-published-statefulsets":              {job + ".name: Required value: write a name", job + ".persiaEnv.PERSIA_NN_WORKER_ENTRY: Required value", "without labels", "without kubectl"},
		"03-code-in-a-folder":                    {"mounted with [implicit-dirs metadata-cache:ttl-secs:60]", "without persia:storage[0]: "},
		"04-mount-options-in-one-text":           {work + `[0]: Invalid value: "implicit-dirs,uid=1000,gid=1000": is not one option, and no pod that mounts the volume would start; write each option as an element of its own: implicit-dirs, uid=1000, gid=1000`},
		"05-flags-as-mount-options":              {work + "[0]", "of its own: implicit-dirs", work + "[1]", "of its own: uid=1000", work + "[2]", "of its own: gid=1000"},
		"06-file-cache-without-limit":            {work + "[1]: file-cache:max-size-mb:-1 may fill the disk of the node, and Kubernetes then evicts pods; write a limit"},
		"07-small-boot-disk":                     {"persia:nodePools[1].nodes: Invalid value: 1: 1 × n2-highmem-16 have too little ephemeral storage for", "; write disk.sizeGb: 50 for the pool cpu", "or request less, like sidecar.ephemeralStorage of buckets, or write 3"},
		"08-reservation-and-compact-placement":   {"persia:nodePools[0].compactPlacement: Invalid value: true: cannot be combined with reservation: the reservation decides where its machines are"},
		"09-hdfs-and-kafka":                      {job + ".env[0].value: namenode.data:9000 is closed to the job", job + ".env[1].value: 10.128.0.9:9092 is closed to the job", "allow the port with a policy of your own"},
		"10-secrets-of-a-new-namespace":          {job + ".imagePullSecrets[0]: the Secret ghcr must be in the namespace persia, which the first `pulumi up` creates", job + ".env[0]: the Secret hub must be", "create it with kubectl while `pulumi up` waits"},
		"11-names-of-one-release":                {"nnWorker of clicks"},
		"12-price-of-a-renamed-context":          {"region unknown: name the context gke_PROJECT_REGION_CLUSTER, or set hourlyPrice of a2-highgpu-1g"},
		"13-machines-that-need-an-older-image":   {"persia:cluster.releaseChannel: RAPID brings the newest node images first, on which a3-highgpu-8g may not run; write STABLE, and hold the nodes with maintenance.exclusions"},
		"14-a-kubernetes-version":                {"persia:cluster.kubernetesVersion: does not exist, because GKE upgrades every cluster; write releaseChannel: STABLE", "maintenance.exclusions"},
		"15-an-existing-network":                 {"persia:cluster.network.name: does not exist, because the stack creates its own network", "create the cluster yourself, and describe it with persia:cluster.existing", "persia:cluster.network.subnetwork: "},
		"16-filestore-by-private-service-access": {"persia:storage[0].filestore.create.connectMode: does not exist", "create the instance yourself, and write instance and ip without create"},
		"17-one-network-card":                    {job + ".nnWorker.nodePool: a a3-megagpu-8g has several network cards, and pods get one of them"},
		"19-names-with-underscores":              {"nnWorker of clicks", "without did you mean"},
		"27-filestore-between-steps":             {`persia:storage[1].size: Invalid value: "1500Gi": is not a capacity of an instance of the tier ZONAL; write 1280Gi or 1536Gi`},
		"38-scratch-larger-than-the-disk":        {job + ".volumes[0].emptyDir.sizeLimit: is more than the 43Gi that a node of the pool cpu has for pods", "write disk.sizeGb or localSsdCount for the pool"},
		"30-list-cache":                          {work + "[0]: with file-system:kernel-list-cache-ttl-secs:-1, a node does not see", "remove it, or mount the volume only with readOnly: true"},
		"37-renames-in-a-bucket":                 {"persia:storage[0].gcsFuse.create.hierarchicalNamespace: does not exist, because the provider cannot", "create the bucket yourself, and name it without create, or write file-system:rename-dir-limit:1000"},
		"published-persiajob":                    {"nnWorker of you-job-name", "without read_only"},
		"published-volume":                       {"checkpoints-vol is mounted with []"},
		"published-pedl":                         {"PEDL database"},
	} {
		t.Run(folder, func(t *testing.T) {
			folder = filepath.Join("testdata", "cases", folder)
			files := testkit.Must(filepath.Glob(filepath.Join(folder, "Pulumi.*.yaml")))(t)
			require.Len(t, files, 1)
			text := said(t, testkit.Parse(t, testkit.Read(t, files[0])), folder)
			for _, say := range says {
				if not, ok := strings.CutPrefix(say, "without "); ok {
					assert.NotContains(t, text, not)
				} else {
					assert.Contains(t, text, say)
				}
			}
		})
	}
}

// said returns all that a first preview says about a stack file in a folder.
func said(t *testing.T, keys input.Values, folder string) string {
	t.Helper()
	stack, err := config.Load(keys.Get, os.DirFS(folder))
	if err != nil {
		return err.Error()
	}
	text := append(append(stack.Warnings(), stack.FirstWarnings()...), stack.Plan().String())
	for _, v := range stack.Storage {
		text = append(text, fmt.Sprintf("%s is mounted with %s", v.Name, v.MountOptions))
	}
	return strings.Join(text, "\n")
}
