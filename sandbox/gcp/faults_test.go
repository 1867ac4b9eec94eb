package gcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config/input"
)

// TestFaults: the program refuses a stack file by path, the provider or Google by object, in at most six lines.
func TestFaults(t *testing.T) {
	const program, google = "stack configuration: 1 problem\n", "googleapi: Error 4"
	const provider, cluster = "invalid value for name (", "container/cluster:Cluster::persia"
	const bucket, share = "storage/bucket:Bucket::gs://my", "filestore/instance:Instance::us-central1-"
	const pool, pools, volumes = "nodes: 4", "persia:nodePools[0].", "persia:storage[0]."
	const created = "my-project-checkpoints, create: {"
	for name, c := range map[string]struct{ old, with, by, at, says string }{
		"an octal number":         {pool, "nodes: 010", program, pools + "nodes", "write 8 or 10"},
		"a mount option":          {created + "}}", created + "}}\n      mountOptions: [temp-dir=/tmp]", program, volumes + "mountOptions[0]", "discarded by GKE's driver"},
		"a bucket of Google's":    {"my-project-checkpoints", "goog-checkpoints", provider, "storage/bucket:Bucket::gs://goog-checkpoints", `cannot begin with the "goog" prefix`},
		"an address as a bucket":  {"my-project-checkpoints", "192.168.5.4", provider, "storage/bucket:Bucket::gs://192.168.5.4", "cannot be represented as an IP address"},
		"two dots":                {"my-project-checkpoints", "my..checkpoints", provider, "storage/bucket:Bucket::gs://my..checkpoints", "each part at most 63"},
		"a bucket in a domain":    {"my-project-checkpoints", "my.example.com", google, bucket + ".example.com", "domain ownership verification"},
		"a bucket on MARS":        {created, created + "location: MARS", google, bucket, "location constraint is not valid"},
		"a bucket in a zone":      {created, created + "location: us-central1-a", google, bucket, "location constraint is not valid"},
		"objects for a day":       {created, created + "softDeleteDays: 1", google, bucket, "from 7 to 90 days"},
		"a key of elsewhere":      {created, created + "kmsKey: projects/p/locations/us/keyRings/r/cryptoKeys/k", google, bucket, "is in us, and must be in us-central1"},
		"no such zone":            {"zones: [us-central1-a]\n    deletion", "zones: [us-central1-d]\n    deletion", google, cluster, "Zone 'us-central1-d' does not exist in region 'us-central1'"},
		"no such region":          {"us-central1", "us-central9", google, "gcp:", "'us-central9'"},
		"GPUs of another zone":    {"gpu: {", "zones: [us-central1-f], gpu: {", google, "container/nodePool:NodePool::persia-training", `"nvidia-l4" does not exist in zone us-central1-f`},
		"an instance in no zone":  {"location: us-central1-a", "location: us-central1-d", google, share, "Permission denied on 'locations/us-central1-d'"},
		"an instance of a region": {"tier: ZONAL", "tier: REGIONAL", google, share, "Invalid tier REGIONAL in us-central1-a"},
		"a share with a hyphen":   {"share: vol1", "share: vol-1", google, share, "Invalid name of a file share: vol-1"},
		"a disk in no zone":       {"us-central1-b", "us-central1-d", google, "compute/regionDisk:RegionDisk::us-central1/regional", "Zone 'us-central1-d' does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "config:" + strings.ReplaceAll(editedStack, "\n", "\n  ")
			require.Contains(t, text, c.old)
			e := newStack(t, t.TempDir())
			path := filepath.Join(e.folder, input.StackFileName(e.name))
			require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, c.old, c.with)), 0o600))
			file, err := input.ReadStackFile(os.DirFS(e.folder), filepath.Base(path), "persia")
			if err == nil {
				err = e.tryUp(values(file.Config.Decrypted()))
			}
			require.ErrorContains(t, err, c.says)
			assert.Contains(t, err.Error(), c.by)
			assert.Contains(t, err.Error(), c.at)
			assert.LessOrEqual(t, len(strings.Split(strings.TrimSpace(err.Error()), "\n")), 6, err.Error())
		})
	}
}
