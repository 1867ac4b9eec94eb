package pedl_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestPEDLCredentials looks for credentials in everything that is registered, as they are and as Kubernetes writes
// them: they are in the data of Secrets, which Pulumi keeps as secrets, and nowhere else.
func TestPEDLCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		settings fields
		secrets  []string
	}{
		"own database": {nil, []string{"pedl-agents-registry", "pedl-master-config", "pedl-postgresql", "pedl-registry"}},
		"external database": {fields{"postgresql.external": fields{"host": "10.0.0.3", "password": externalPassword}},
			[]string{"pedl-agents-registry", "pedl-master-config", "pedl-registry"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder, secrets := deployPEDL(t, test.settings), []string{}
			for _, registration := range recorder.Resources {
				text := testkit.Must(json.Marshal(plain(registration.Inputs).Mappable()))(t)
				for _, written := range []string{registryPassword, databasePassword, externalPassword, programtest.Password} {
					assertHides(t, registration.URN, string(text), written)
				}
				if registration.TypeToken == "kubernetes:core/v1:Secret" {
					assert.True(t, registration.Inputs["data"].IsSecret(), registration.URN)
					secrets = append(secrets, registration.Name)
				}
			}
			slices.Sort(secrets)
			assert.Equal(t, test.secrets, secrets)
		})
	}
}

// plain returns properties without the secret ones.
func plain(properties resource.PropertyMap) resource.PropertyMap {
	left := resource.PropertyMap{}
	for key, value := range properties {
		if !value.ContainsSecrets() {
			left[key] = value
		}
	}
	return left
}

// TestPEDLWithAnotherDatabase: the master reaches it, and no other is created.
func TestPEDLWithAnotherDatabase(t *testing.T) {
	for host, to := range map[string]any{"10.0.0.3": []any{fields{"ipBlock": fields{"cidr": "10.0.0.3/32"}}}, "db.example.com": nil} {
		r := deployPEDL(t, fields{"postgresql.external": fields{"host": host, "port": 6543, "user": "pedl", "database": "d", "password": externalPassword}})
		policy := r.One(t, testkit.NetworkPolicy, "pedl-master")
		assert.Equal(t, to, testkit.Found(t, policy, "spec.egress[0].to"))
		assert.Equal(t, 6543.0, testkit.At(t, policy, "spec.egress[0].ports[0].port"))
		assert.Equal(t, []any{host, 6543.0, "pedl", "d", externalPassword},
			[]any{masterSetting("host")(t, r), masterSetting("port")(t, r), masterSetting("user")(t, r), masterSetting("name")(t, r), masterSetting("password")(t, r)})
		assert.Nil(t, in(testkit.StatefulSet, "pedl-postgresql", "spec")(t, r))
		assert.Nil(t, in(testkit.Claim, "pedl-postgresql", "spec")(t, r))
	}
}

// TestPEDLDatabaseIsKept checks what destroy keeps.
func TestPEDLDatabaseIsKept(t *testing.T) {
	r := deployPEDL(t, nil)
	disk := r.One(t, testkit.Disk, "us-central1-a/persia-dev-pedl-postgresql")
	assert.Equal(t, "persia-dev-pedl-postgresql", testkit.At(t, disk, "name"))
	assert.True(t, disk.RegisterRPC.GetRetainOnDelete())
	assert.Equal(t, "Retain", testkit.At(t, r.One(t, testkit.Volume, "pedl-postgresql"), "spec.persistentVolumeReclaimPolicy"))
	assert.Equal(t, fields{"namespace": "pedl", "name": "pedl-postgresql", "apiVersion": "v1", "kind": "PersistentVolumeClaim"},
		testkit.At(t, r.One(t, testkit.Volume, "pedl-postgresql"), "spec.claimRef"))
	assert.False(t, r.One(t, testkit.Namespace, "pedl").RegisterRPC.GetRetainOnDelete())

	for _, settings := range []fields{{"postgresql.persistence.existingClaim": "mine"}, {"postgresql.persistence.storageClass": "premium-rwo"}} {
		r := deployPEDL(t, settings)
		assert.True(t, r.One(t, testkit.Namespace, "pedl").RegisterRPC.GetRetainOnDelete(), "a claim is in it")
		assert.False(t, r.One(t, testkit.Namespace, "pedl-agents").RegisterRPC.GetRetainOnDelete())
		for _, claim := range r.All(t, testkit.Claim) {
			if testkit.Object[corev1.PersistentVolumeClaim](t, claim).Namespace == "pedl" {
				assert.True(t, claim.RegisterRPC.GetRetainOnDelete())
			}
		}
	}

	label := map[string]any{"persia-stack": programtest.ThisStack}
	found, err := programtest.Deploy(t, pedlStack(t, nil), testkit.Cloud{"projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql": {
		"id": "d", "size": 100, "effectiveLabels": label, "type": "https://c/zones/us-central1-a/diskTypes/pd-balanced", "diskEncryptionKeys": list{}}})
	require.NoError(t, err)
	assert.Equal(t, "projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql",
		found.One(t, testkit.Disk, "us-central1-a/persia-dev-pedl-postgresql").RegisterRPC.GetImportId())
	_, err = programtest.Deploy(t, pedlStack(t, nil), testkit.Cloud{"projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql": {
		"id": "d", "size": 100, "effectiveLabels": fields{}, "type": "https://c/zones/us-central1-a/diskTypes/pd-balanced", "diskEncryptionKeys": list{}}})
	assert.ErrorContains(t, err, "persia:pedl.postgresql.persistence.persistentDisk: Invalid value")
}

// TestWithoutPEDL checks that {}, the default in Pulumi.yaml, registers nothing.
func TestWithoutPEDL(t *testing.T) {
	without := programtest.ReadStack(t, "Pulumi.dev.yaml", testkit.Edits{"persia:pedl": fields{}})
	assert.Equal(t, programtest.DeployFile(t, "Pulumi.dev.yaml").URNs(), programtest.MustDeploy(t, without).URNs())
}

// assertHides checks that a text contains no secret, neither plain nor in base64 as in a Secret.
func assertHides(t testing.TB, what, text, secret string) {
	t.Helper()
	assert.False(t, strings.Contains(text, secret), "%s has a secret", what)
	// The number of bytes before the secret decides how base64 groups its bytes.
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		assert.False(t, strings.Contains(text, encoded[4:len(encoded)-4]), "%s has a secret in base64", what)
	}
}
