package google

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRefusedMachines checks that the creation of a pool with fields that exclude each other is refused.
func TestRefusedMachines(t *testing.T) {
	on := Body{"enabled": true}
	for name, c := range map[string]struct {
		config Body
		want   string
	}{
		"gVNIC":                        {Body{"machineType": "n2-standard-8", "imageType": "COS_CONTAINERD", "gvnic": on}, ""},
		"gVNIC with the default image": {Body{"machineType": "n2-standard-8", "gvnic": on}, ""},
		"gVNIC on Ubuntu":              {Body{"machineType": "n2-standard-8", "imageType": "UBUNTU_CONTAINERD", "gvnic": on}, "gVNIC is not supported with image type UBUNTU_CONTAINERD"},
		"gVNIC on M1":                  {Body{"machineType": "m1-ultramem-80", "imageType": "COS_CONTAINERD", "gvnic": on}, "gVNIC is not supported with machine type m1-ultramem-80"},
		"gVNIC on M2":                  {Body{"machineType": "m2-ultramem-416", "gvnic": on}, "gVNIC is not supported with machine type m2-ultramem-416"},
		"gVNIC on M3":                  {Body{"machineType": "m3-ultramem-32", "gvnic": on}, ""},
		"no gVNIC on Ubuntu":           {Body{"machineType": "m2-ultramem-416", "imageType": "UBUNTU_CONTAINERD"}, ""},
		"image streaming on Ubuntu":    {Body{"machineType": "n2-standard-8", "imageType": "ubuntu_containerd", "gcfsConfig": on}, "Image streaming is not supported"},
		"a disk of another series":     {Body{"machineType": "c3-standard-44", "diskType": "pd-standard"}, "pd-standard disk type cannot be used by c3-standard-44"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkMachine(c.config)
			if c.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}
