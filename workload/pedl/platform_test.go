package pedl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestPEDLCredentials looks for credentials in everything that is registered, as they
// are and as Kubernetes writes them: they are in the data of Secrets, which Pulumi
// keeps as secrets, and nowhere else.
func TestPEDLCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		settings fields
		secrets  []string
	}{
		"own database": {nil, []string{"adult-income-token", "pedl-agents-registry", "pedl-master-config", "pedl-postgresql", "pedl-registry"}},
		"external database": {fields{"postgresql.external": fields{"host": "10.0.0.3", "password": externalPassword}},
			[]string{"adult-income-token", "pedl-agents-registry", "pedl-master-config", "pedl-registry"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder, secrets := deployPEDL(t, test.settings), []string{}
			for _, registration := range recorder.Resources {
				text, err := json.Marshal(plain(registration.Inputs).Mappable())
				require.NoError(t, err)
				for _, written := range []string{registryPassword, databasePassword, externalPassword, programtest.Password} {
					testkit.AssertHides(t, registration.URN, string(text), written)
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

// TestPEDLPlaces checks where each part runs, with which account, and after which others.
func TestPEDLPlaces(t *testing.T) {
	r := deployPEDL(t, fields{"agent.nodePools": list{"pedl"}, "nodePool": "spare", "supportCheck": fields{"nodePool": "pedl"}})
	master := testkit.Object[appsv1.Deployment](t, r.One(t, testkit.Deployment, "pedl-master"))
	database := testkit.Object[appsv1.StatefulSet](t, r.One(t, testkit.StatefulSet, "pedl-postgresql"))
	agents := testkit.Object[appsv1.DaemonSet](t, r.One(t, testkit.DaemonSet, "pedl-agent"))
	checkJob := r.One(t, "kubernetes:batch/v1:Job", "test-pedl-support")
	assert.True(t, checkJob.RegisterRPC.GetDeleteBeforeReplace(), "pulumi up --replace runs the check again")
	check := testkit.Object[batchv1.Job](t, checkJob)
	for namespace, pods := range map[string][]corev1.PodTemplateSpec{
		"pedl": {master.Spec.Template, database.Spec.Template}, "pedl-agents": {agents.Spec.Template, check.Spec.Template},
	} {
		for _, pod := range pods {
			assert.Equal(t, "pedl", pod.Spec.ServiceAccountName)
			assert.False(t, *pod.Spec.AutomountServiceAccountToken)
			assert.False(t, pod.Spec.HostNetwork)
			assert.False(t, *pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation)
			assert.Equal(t, []corev1.Capability{"ALL"}, pod.Spec.Containers[0].SecurityContext.Capabilities.Drop)
		}
		registered := r.One(t, "kubernetes:core/v1:ServiceAccount", namespace)
		assert.False(t, *testkit.Object[corev1.ServiceAccount](t, registered).AutomountServiceAccountToken)
	}
	for _, pod := range []corev1.PodTemplateSpec{master.Spec.Template, database.Spec.Template} {
		assert.Equal(t, map[string]string{"cloud.google.com/gke-nodepool": "spare"}, pod.Spec.NodeSelector)
		assert.Equal(t, "7", pod.Annotations["configuration-version"], "the version of what it is configured by")
	}
	assert.Equal(t, int64(1001), *database.Spec.Template.Spec.SecurityContext.FSGroup)
	assert.True(t, *database.Spec.Template.Spec.SecurityContext.RunAsNonRoot)

	assert.Equal(t, map[string]string{"determined.ai/pedl-agent": "present"}, agents.Spec.Template.Spec.NodeSelector)
	socket := corev1.HostPathSocket
	for _, pod := range []corev1.PodSpec{agents.Spec.Template.Spec, check.Spec.Template.Spec} {
		assert.Equal(t, corev1.HostPathVolumeSource{Path: "/var/run/docker.sock", Type: &socket}, *pod.Volumes[0].HostPath)
		assert.Equal(t, "/var/run/docker.sock", pod.Containers[0].VolumeMounts[0].MountPath)
		var keys []string
		for _, toleration := range pod.Tolerations {
			keys = append(keys, toleration.Key)
		}
		assert.ElementsMatch(t, []string{"determined.ai/pedl-agent", "nvidia.com/gpu", "team"}, keys)
	}
	assert.Equal(t, map[string]string{"cloud.google.com/gke-nodepool": "pedl"}, check.Spec.Template.Spec.NodeSelector)
	assert.Equal(t, "10.1.0.9", testkit.Object[corev1.ConfigMap](t, r.One(t, testkit.ConfigMap, "pedl-agent")).Data["PEDL_MASTER_HOST"])

	level := func(namespace string) string {
		return testkit.Object[corev1.Namespace](t, r.One(t, testkit.Namespace, namespace)).Labels["pod-security.kubernetes.io/enforce"]
	}
	assert.Equal(t, "baseline", level("pedl"))
	assert.Equal(t, "privileged", level("pedl-agents"))

	pool := r.One(t, testkit.NodePool, "persia-dev-pedl")
	assert.Equal(t, "present", testkit.At(t, pool, `nodeConfig.labels["determined.ai/pedl-agent"]`))
	assert.Equal(t, list{
		fields{"key": "team", "value": "ranking", "effect": "NO_SCHEDULE"},
		fields{"key": "determined.ai/pedl-agent", "value": "present", "effect": "NO_SCHEDULE"},
	}, testkit.At(t, pool, "nodeConfig.taints"))
	other := r.One(t, testkit.NodePool, "persia-dev-gpu")
	assert.Empty(t, testkit.At(t, other, "nodeConfig.taints"))
	assert.Nil(t, testkit.Found(t, other, `nodeConfig.labels["determined.ai/pedl-agent"]`))

	for after, before := range map[string][]string{
		"pedl-postgresql": {testkit.Claim + "::pedl-postgresql", testkit.NetworkPolicy + "::pedl-closed", testkit.NetworkPolicy + "::pedl-postgresql"},
	} {
		assertAfter(t, r, r.One(t, testkit.StatefulSet, after), before...)
	}
	assertAfter(t, r, r.One(t, testkit.Deployment, "pedl-master"), testkit.StatefulSet+"::pedl-postgresql", testkit.NetworkPolicy+"::pedl-master", "kubernetes:core/v1:Secret::pedl-registry")
	assertAfter(t, r, r.One(t, testkit.DaemonSet, "pedl-agent"), testkit.Deployment+"::pedl-master", testkit.NetworkPolicy+"::pedl-agents-closed", testkit.NetworkPolicy+"::pedl-agent")
}

// assertAfter checks that a resource comes after others, each TYPE::NAME.
func assertAfter(t *testing.T, r *testkit.Recorder, registration testkit.Resource, others ...string) {
	t.Helper()
	before := r.Before(registration)
	for _, other := range others {
		typeToken, name, _ := strings.Cut(other, "::")
		assert.True(t, before[r.One(t, typeToken, name).URN], "%s comes after %s", registration.URN, other)
	}
}

// TestPEDLTraffic lists the allowed connections.
func TestPEDLTraffic(t *testing.T) {
	r := deployPEDL(t, nil)
	const master, database = "app.kubernetes.io/name=pedl-master,app.kubernetes.io/part-of=persia", "app.kubernetes.io/name=pedl-postgresql,app.kubernetes.io/part-of=persia"
	for name, want := range map[string][2][]string{
		"pedl-closed":        {},
		"pedl-agents-closed": {},
		"pedl-master":        {{"anywhere to TCP 8080"}, {"to " + database + " on TCP 5432", "to anywhere on TCP 53 UDP 53"}},
		"pedl-postgresql":    {{master + " to TCP 5432"}, nil},
		"pedl-agent":         {nil, {"to " + master + " in pedl on TCP 8080", "to anywhere on TCP 53 UDP 53"}},
	} {
		policy := testkit.Object[networkingv1.NetworkPolicy](t, r.One(t, testkit.NetworkPolicy, name))
		assert.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, policy.Spec.PolicyTypes, name)
		in, out := testkit.Traffic(policy)
		assert.Equal(t, want, [2][]string{in, out}, name)
	}
	for host, to := range map[string]string{"10.0.0.3": "10.0.0.3/32", "db.example.com": "anywhere"} {
		r := deployPEDL(t, fields{"postgresql.external": fields{"host": host, "port": 6543, "user": "pedl", "database": "d", "password": externalPassword}})
		_, out := testkit.Traffic(testkit.Object[networkingv1.NetworkPolicy](t, r.One(t, testkit.NetworkPolicy, "pedl-master")))
		assert.Equal(t, "to "+to+" on TCP 6543", out[0])
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
	found, err := programtest.DeployOver(t, pedlStack(t, nil), testkit.Cloud{"projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql": {
		"id": "d", "size": 100, "effectiveLabels": label, "type": "https://c/zones/us-central1-a/diskTypes/pd-balanced", "diskEncryptionKeys": list{}}})
	require.NoError(t, err)
	assert.Equal(t, "projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql",
		found.One(t, testkit.Disk, "us-central1-a/persia-dev-pedl-postgresql").RegisterRPC.GetImportId())
	_, err = programtest.DeployOver(t, pedlStack(t, nil), testkit.Cloud{"projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql": {
		"id": "d", "size": 100, "effectiveLabels": fields{}, "type": "https://c/zones/us-central1-a/diskTypes/pd-balanced", "diskEncryptionKeys": list{}}})
	assert.ErrorContains(t, err, "persia:pedl.postgresql.persistence.persistentDisk: Invalid value")
}

// TestWithoutPEDL checks that {}, the default in Pulumi.yaml, registers nothing.
func TestWithoutPEDL(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	configuration["persia:pedl"] = "{}"
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	assert.Equal(t, programtest.DeployStack(t, "dev").URNs(), recorder.URNs())
}

// TestPEDLDocumented deploys the stack that the page begins with.
func TestPEDLDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "guides", "pedl.md"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "\n    persia:nodePools:\n")
	sample, _, _ := strings.Cut(rest, "\n\n")
	var documented struct {
		Pools []any  `json:"persia:nodePools"`
		PEDL  fields `json:"persia:pedl"`
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte("    persia:nodePools:\n"+sample), &documented))
	configuration, pools := programtest.ReadStack(t, "dev"), []any{}
	require.NoError(t, json.Unmarshal([]byte(configuration["persia:nodePools"]), &pools))
	text, err := json.Marshal(append(pools, append(documented.Pools, fields{"name": "services", "machineType": "n2-standard-8", "nodes": 2})...))
	require.NoError(t, err)
	configuration["persia:nodePools"] = string(text)
	write(documented.PEDL, "registry.password", registryPassword)
	write(documented.PEDL, "postgresql.postgresqlPassword", databasePassword)
	text, err = json.Marshal(documented.PEDL)
	require.NoError(t, err)
	configuration["persia:pedl"] = string(text)
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	assert.Equal(t, "determinedai/pedl-master:0.9.0", in(testkit.Deployment, "pedl-master", containerPath+"image")(t, recorder))
}

// TestPEDLURNs keeps the names of PEDL's resources.
func TestPEDLURNs(t *testing.T) {
	r := deployPEDL(t, fields{"ingress.enabled": true, "supportCheck": fields{"nodePool": "pedl"}})
	without := programtest.DeployStack(t, "dev").URNs()
	urns := slices.DeleteFunc(r.URNs(), func(urn string) bool { return slices.Contains(without, urn) || strings.Contains(urn, "nodePool") })
	testkit.AssertFile(t, "pedl.urns", strings.Join(urns, "\n")+"\n")
}
