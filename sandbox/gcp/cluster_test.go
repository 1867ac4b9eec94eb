package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/sandbox/gcp/property"
)

// clusterInputs returns the inputs of the program's cluster.
func clusterInputs() resource.PropertyMap {
	return properties(values{
		"project":            "my-project",
		"location":           "us-central1",
		"name":               "persia",
		"network":            "projects/my-project/global/networks/persia",
		"subnetwork":         "projects/my-project/regions/us-central1/subnetworks/persia",
		"nodeLocations":      []any{"us-central1-c"},
		"deletionProtection": false,
		"datapathProvider":   "ADVANCED_DATAPATH",
		"releaseChannel":     values{"channel": "REGULAR"},
		"ipAllocationPolicy": values{"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"},
		"privateClusterConfig": values{
			"enablePrivateNodes":    true,
			"enablePrivateEndpoint": false,
			"masterIpv4CidrBlock":   "172.16.0.0/28",
		},
		"addonsConfig": values{
			"gcePersistentDiskCsiDriverConfig": values{"enabled": true},
			"gcsFuseCsiDriverConfig":           values{"enabled": true},
			"gcpFilestoreCsiDriverConfig":      values{"enabled": true},
		},
		"nodeConfig": values{"oauthScopes": []any{"https://www.googleapis.com/auth/cloud-platform"}},
	})
}

// installed returns the names of GKE's own objects in the control plane.
func (g simulated) installed() []string {
	g.Helper()
	drivers, err := g.client.StorageV1().CSIDrivers().List(g.Context(), metav1.ListOptions{})
	require.NoError(g, err)
	classes, err := g.client.StorageV1().StorageClasses().List(g.Context(), metav1.ListOptions{})
	require.NoError(g, err)
	var names []string
	for _, driver := range drivers.Items {
		names = append(names, driver.Name)
	}
	for _, class := range classes.Items {
		names = append(names, class.Name)
	}
	return names
}

func TestClusterBringsWhatGKEInstalls(t *testing.T) {
	const (
		fuse  = "gcsfuse.csi.storage.gke.io"
		disk  = "pd.csi.storage.gke.io"
		files = "filestore.csi.storage.gke.io"
		class = "standard-rwo"
	)
	on, off := values{"enabled": true}, values{"enabled": false}
	for _, c := range []struct {
		name   string
		addons values
		// created is there after a creation, and updated after an update of a cluster
		// with all addons.
		created, updated []string
	}{
		{"all addons", values{
			"gcsFuseCsiDriverConfig": on, "gcePersistentDiskCsiDriverConfig": on, "gcpFilestoreCsiDriverConfig": on,
		}, []string{fuse, disk, files, class}, []string{fuse, disk, files, class}},
		{"nothing said", values{}, []string{disk, class}, []string{fuse, disk, files, class}},
		{"all off", values{
			"gcsFuseCsiDriverConfig": off, "gcePersistentDiskCsiDriverConfig": off, "gcpFilestoreCsiDriverConfig": off,
		}, []string{disk, class}, []string{class}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGoogle(t)
			inputs := change(t, clusterInputs(), "addonsConfig", c.addons)
			g.create(clusterType, inputs)
			assert.ElementsMatch(t, c.created, g.installed())

			g.update(clusterType, inputs, clusterInputs())
			assert.ElementsMatch(t, []string{fuse, disk, files, class}, g.installed(), "addons can be turned on")
			g.update(clusterType, clusterInputs(), inputs)
			assert.ElementsMatch(t, c.updated, g.installed(), "and off")

			require.NoError(t, g.delete(clusterType, inputs))
			assert.Empty(t, g.installed())
			require.NoError(t, g.delete(clusterType, inputs), "deleting again finds nothing")
		})
	}
}

func TestDefaultStorageClassWaitsForPods(t *testing.T) {
	g := newGoogle(t)
	g.create(clusterType, clusterInputs())
	class, err := g.client.StorageV1().StorageClasses().Get(t.Context(), "standard-rwo", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "true", class.Annotations["storageclass.kubernetes.io/is-default-class"])
	assert.EqualValues(t, "WaitForFirstConsumer", *class.VolumeBindingMode)
}

func TestClusterOutputsAreTheControlPlanes(t *testing.T) {
	g := newGoogle(t)
	created := g.create(clusterType, clusterInputs())
	assert.EqualValues(t, "projects/my-project/locations/us-central1/clusters/persia", created.ID)
	assert.Equal(t, "127.0.0.1:6443", property.Text(created.Properties, "endpoint"))
	assert.Equal(t, "Y2VydGlmaWNhdGU=", property.Text(property.Object(created.Properties, "masterAuth"), "clusterCaCertificate"))
	assert.Equal(t, created.Properties, g.read(clusterType, clusterInputs()).Outputs)
}

func TestDeletionProtection(t *testing.T) {
	for _, c := range []struct {
		name      string
		value     any
		protected bool
	}{
		{"true", true, true},
		{"false", false, false},
		{"nothing said", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGoogle(t)
			state := g.create(clusterType, change(t, clusterInputs(), "deletionProtection", c.value)).Properties
			err := g.delete(clusterType, state)
			if !c.protected {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "deletionProtection")
			assert.NotEmpty(t, g.installed(), "nothing is taken out")

			state = g.update(clusterType, state, clusterInputs()).Properties
			assert.NoError(t, g.delete(clusterType, state), "an update lifts it")
		})
	}
}
