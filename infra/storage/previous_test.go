package storage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
)

// TestMoved checks the warning about a volume with another bucket, disk or instance than after the
// last update: it is empty, or has data that the job does not expect.
func TestMoved(t *testing.T) {
	bucket := func(name string) config.Sources {
		return config.Sources{GCSFuse: &config.GCSFuse{Bucket: name, Create: &config.CreateBucket{}}}
	}
	disk := config.Sources{PersistentDisk: &config.PersistentDisk{Disk: "d", Project: "p", Zones: []string{"us-central1-a"}}}
	stored := func(name string, sources config.Sources) []config.StoredVolume {
		return []config.StoredVolume{{Volume: config.Volume{Name: name, Sources: sources}, Path: field.NewPath("persia:storage").Index(0)}}
	}
	previous := []Record{{Volume: "a", Source: bucket("old")}, {Source: bucket("left")}}
	for name, test := range map[string]struct {
		volumes []config.StoredVolume
		found   map[string]Found
		want    []string
	}{
		"as it was":     {stored("a", bucket("old")), nil, nil},
		"renamed":       {stored("b", bucket("old")), nil, nil},
		"another name":  {stored("b", bucket("new")), nil, nil},
		"a new bucket":  {stored("a", bucket("new")), nil, []string{"persia:storage[0]: the volume a was gs://old, and is now gs://new, which is empty. The data stays in gs://old, where no pod sees it; write that name again to go on from there"}},
		"an old bucket": {stored("a", bucket("new")), map[string]Found{"a": {ID: "new"}}, []string{"persia:storage[0]: the volume a was gs://old, and is now gs://new, which is not the same data. The data stays in gs://old, where no pod sees it; write that name again to go on from there"}},
		"a disk":        {stored("a", disk), nil, []string{"persia:storage[0]: the volume a was gs://old, and is now projects/p/zones/us-central1-a/disks/d, which is not the same data. The data stays in gs://old, where no pod sees it; write that name again to go on from there"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, Moved(previous, test.volumes, test.found))
		})
	}
}

// TestShared: a job whose stack file was copied trains in the bucket of another stack.
func TestShared(t *testing.T) {
	bucket := func(name string, create *config.CreateBucket) config.Sources {
		return config.Sources{GCSFuse: &config.GCSFuse{Bucket: name, Create: create}}
	}
	for name, test := range map[string]struct {
		source config.Sources
		warns  bool
	}{
		"an existing bucket":      {bucket("new", nil), true},
		"a bucket of the stack":   {bucket("new", &config.CreateBucket{}), false},
		"a bucket that it had":    {bucket("old", nil), false},
		"an export":               {config.Sources{NFS: &config.NFS{Server: "10.0.0.2", Path: "/"}}, true},
		"a directory of the node": {config.Sources{HostPath: &config.HostPath{Path: "/data"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := []config.StoredVolume{{Volume: config.Volume{Name: "a", Sources: test.source}, Path: field.NewPath("persia:storage").Index(0)}}
			warnings := Shared([]Record{{Volume: "b", Source: bucket("old", nil)}}, volumes)
			assert.Equal(t, test.warns, len(warnings) == 1, "%s", warnings)
		})
	}
}
