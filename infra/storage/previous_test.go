package storage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
)

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
			warnings := Shared(map[string]Pair{"b": {volume: true, spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: backendOf(&config.GCSFuse{Bucket: "old"}).spec}}}, volumes)
			assert.Equal(t, test.warns, len(warnings) == 1, "%s", warnings)
		})
	}
}
