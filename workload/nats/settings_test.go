package nats_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/kube"
)

// everything is NATS with all that can be set.
func everything(t *testing.T) string {
	t.Helper()
	certificate := func(c testkit.Certificate) map[string]any {
		return map[string]any{"ca": c.CA, "certificate": c.Certificate, "key": c.Key}
	}
	text, err := json.Marshal(map[string]any{
		"name": "broker", "size": 5, "version": "2.10.20", "image": "registry.example.com/nats",
		"maxPayload": 1 << 20, "maxPending": 8 << 20, "maxConnections": 2000, "writeDeadline": "30s",
		"nodePool": "nats", "antiAffinity": true, "spread": false, "metrics": true, "configReload": false,
		"resources":     map[string]any{"limits": map[string]any{"cpu": "4", "memory": "8Gi"}},
		"operatorScope": "cluster",
		"users": []any{
			map[string]any{"name": "persia", "password": programtest.Password},
			map[string]any{"name": "me", "password": "another-" + programtest.Password},
		},
		"tls": map[string]any{
			"clients": certificate(testkit.NewCertificate(t, "broker.nats-io.svc")),
			"routes":  certificate(testkit.NewCertificate(t, "*.broker-mgmt.nats-io.svc")),
		},
	})
	require.NoError(t, err)
	return string(text)
}

func natsSettings(t *testing.T, change func(nats map[string]any)) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:nats", func(nats any) { change(nats.(map[string]any)) })
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	return recorder
}

// TestWhatReplacesServers has changes that neither the operator nor a running server takes over.
func TestWhatReplacesServers(t *testing.T) {
	for name, test := range map[string]struct {
		settings        func(map[string]any)
		replaces, keeps []string
		trigger         bool
	}{
		"with reload": {func(map[string]any) {},
			[]string{"spec.pod", "spec.template", "spec.serverImage", "spec.tls", "spec.natsConfig.maxPending"},
			[]string{"spec", "spec.size", "spec.version", "spec.natsConfig", "spec.auth"}, false},
		"without reload": {func(nats map[string]any) { nats["configReload"] = false },
			[]string{"spec.pod", "spec.template", "spec.serverImage", "spec.tls", "spec.natsConfig", "spec.auth"},
			[]string{"spec", "spec.size", "spec.version"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			rpc := natsSettings(t, test.settings).One(t, testkit.NATSCluster, "persia-nats-service").RegisterRPC
			assert.Subset(t, rpc.ReplaceOnChanges, test.replaces)
			for _, path := range test.keeps {
				assert.NotContains(t, rpc.ReplaceOnChanges, path)
			}
			assert.True(t, rpc.DeleteBeforeReplace, "the name is taken")
			assert.Equal(t, test.trigger, rpc.ReplacementTrigger != nil)
		})
	}
}

// TestPlainPassword: nothing is registered where a password is no secret of Pulumi's.
func TestPlainPassword(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	configuration["persia:jobs"] = "[]"
	programtest.Edit(t, configuration, "persia:nats", func(nats any) {
		nats.(map[string]any)["users"] = []any{map[string]any{"name": "persia", "password": programtest.Password}}
	})
	_, err := programtest.Deploy(t, configuration)
	require.NoError(t, err, "as a secret")
	recorder, err := programtest.Run(t, pulumi.RunInfo{Config: configuration, ConfigSecretKeys: []string{}}, nil)
	require.ErrorContains(t, err, "persia:nats.users[0].password: is in plain text")
	assert.NotContains(t, err.Error(), programtest.Password)
	assert.Empty(t, recorder.Resources)
}

// TestPasswordsAreInSecrets: passwords go into Secrets, and nowhere else.
func TestPasswordsAreInSecrets(t *testing.T) {
	recorder := natsOf(t, everything(t))
	seen := 0
	for _, registration := range recorder.Resources {
		text, err := json.Marshal(registration.Inputs.Mappable())
		require.NoError(t, err)
		assert.NotContains(t, string(text), programtest.Password, registration.URN)
		if registration.TypeToken == "kubernetes:core/v1:Secret" {
			seen++
			assert.True(t, registration.Inputs["data"].IsSecret(), registration.URN)
		}
	}
	assert.Equal(t, 5, seen, "users, client, two certificates, and the token of the job")

	users := testkit.SecretOf(t, recorder, "broker-users")
	assert.Equal(t, "nats-io", users.Namespace)
	assert.JSONEq(t, `{"users": [{"username": "persia", "password": "`+programtest.Password+`"}, {"username": "me", "password": "another-`+programtest.Password+`"}]}`,
		string(users.Data["users.json"]))
	client := testkit.SecretOf(t, recorder, "broker-client")
	assert.Equal(t, "persia", client.Namespace)
	assert.Equal(t, map[string][]byte{"persia": []byte("tls://persia:" + programtest.Password + "@broker.nats-io.svc:4222")}, client.Data)

	cluster := testkit.Object[programtest.NATSCluster](t, recorder.One(t, testkit.NATSCluster, "broker"))
	assert.Equal(t, users.Name, cluster.Spec.Auth.ClientsAuthSecret)
	for _, role := range recorder.All(t, testkit.StatefulSet) {
		url := testkit.Environment(t, role)["PERSIA_NATS_URL"]
		assert.Empty(t, url.Value)
		require.NotNil(t, url.ValueFrom)
		assert.Equal(t, "broker-client", url.ValueFrom.SecretKeyRef.Name)
		assert.Equal(t, "persia", url.ValueFrom.SecretKeyRef.Key)
		assert.Contains(t, recorder.Before(role), recorder.One(t, testkit.Secret, "broker-client").URN)
	}
	for name, files := range map[string][]string{
		"broker-client-tls": {"ca.pem", "server.pem", "server-key.pem"},
		"broker-route-tls":  {"ca.pem", "route.pem", "route-key.pem"},
	} {
		certificate := testkit.SecretOf(t, recorder, name)
		for _, file := range files {
			assert.Contains(t, string(certificate.Data[file]), "-----BEGIN", file)
		}
		assert.Contains(t, recorder.One(t, testkit.NATSCluster, "broker").Dependencies(), recorder.One(t, testkit.Secret, name).URN)
	}
}

func TestWithoutUsers(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	assert.Len(t, prod.All(t, testkit.Secret), 1, "the token of the job")
	for _, role := range prod.All(t, testkit.StatefulSet) {
		assert.Equal(t, "nats://persia-nats-service.nats-io.svc:4222", testkit.Environment(t, role)["PERSIA_NATS_URL"].Value)
	}
}

// TestServersAreHardened checks the pod template from which the operator creates servers.
func TestServersAreHardened(t *testing.T) {
	pod := testkit.Object[programtest.NATSCluster](t, programtest.DeployStack(t, "prod").One(t, testkit.NATSCluster, "persia-nats-service")).Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	container := pod.Containers[0]
	assert.Equal(t, "nats", container.Name, "what the operator calls it")
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
	assert.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
	assert.False(t, *pod.AutomountServiceAccountToken)
	assert.Equal(t, 8222, container.ReadinessProbe.HTTPGet.Port.IntValue())
	require.Len(t, pod.TopologySpreadConstraints, 2)
	for _, constraint := range pod.TopologySpreadConstraints {
		assert.Equal(t, corev1.ScheduleAnyway, constraint.WhenUnsatisfiable, "a preference keeps no pod waiting")
		assert.Equal(t, map[string]string{"app": "nats", "nats_cluster": "persia-nats-service"}, constraint.LabelSelector.MatchLabels)
	}
}

// TestDisruptionBudget: it counts the servers that stay, since Kubernetes knows no number of pods
// of a custom resource, and is ready when all servers of the version are.
func TestDisruptionBudget(t *testing.T) {
	budget := testkit.Object[policyv1.PodDisruptionBudget](t, programtest.DeployStack(t, "prod").One(t, testkit.DisruptionBudget, "persia-nats-service"))
	assert.Nil(t, budget.Spec.MaxUnavailable)
	assert.Equal(t, policyv1.AlwaysAllow, *budget.Spec.UnhealthyPodEvictionPolicy)
	assert.Equal(t, 59, budget.Spec.MinAvailable.IntValue())
	assert.Equal(t, map[string]string{"app": "nats", "nats_cluster": "persia-nats-service", "nats_version": "2.10.22"}, budget.Spec.Selector.MatchLabels)
	assert.Equal(t, "jsonpath={.status.currentHealthy}=60", budget.Annotations["pulumi.com/waitFor"])
}

// TestNetworkPolicies lists all who are let in, and where servers go.
func TestNetworkPolicies(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	require.Len(t, prod.All(t, testkit.NetworkPolicy), 5, "of NATS and of jobs")

	servers := testkit.Object[networkingv1.NetworkPolicy](t, prod.One(t, testkit.NetworkPolicy, "persia-nats-service"))
	assert.Equal(t, map[string]string{"app": "nats", "nats_cluster": "persia-nats-service"}, servers.Spec.PodSelector.MatchLabels)
	assert.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, servers.Spec.PolicyTypes)
	in, out := testkit.Traffic(servers)
	assert.Equal(t, []string{
		"persia_job=criteo in persia to TCP 4222",
		"app=nats,nats_cluster=persia-nats-service to TCP 6222",
		"anything in gmp-system to TCP 8222 TCP 7777",
	}, in)
	assert.Equal(t, []string{
		"to app=nats,nats_cluster=persia-nats-service on TCP 6222",
		"to anywhere on TCP 53 UDP 53",
	}, out)

	for _, role := range prod.All(t, testkit.StatefulSet) {
		set := testkit.Object[appsv1.StatefulSet](t, role)
		assert.Equal(t, "persia", set.Namespace)
		assert.Contains(t, set.Spec.Template.Labels, "persia_job", "what lets a role in")
	}
}

func TestNATS(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	cluster := prod.One(t, testkit.NATSCluster, "persia-nats-service")
	for path, want := range map[string]any{
		"metadata.namespace":               "nats-io",
		"metadata.name":                    "persia-nats-service",
		"spec.size":                        60.0,
		"spec.version":                     "2.10.22",
		"spec.serverImage":                 programtest.ProdCache + "library/nats",
		"spec.natsConfig.maxPayload":       52428800.0,
		"spec.pod.resources.requests.cpu":  "4",
		"spec.pod.resources.limits.memory": "32Gi",
		`spec.pod.nodeSelector["cloud.google.com/gke-nodepool"]`: "nats",
		"spec.pod.tolerations[0].value":                          "nats",
	} {
		assert.Equal(t, want, testkit.At(t, cluster, path), path)
	}
	assert.NotContains(t, cluster.Inputs["spec"].ObjectValue(), resource.PropertyKey("resources"),
		"where the operator does not look")

	deployment := testkit.Object[appsv1.Deployment](t, prod.One(t, testkit.Deployment, "nats-operator"))
	pod := deployment.Spec.Template.Spec
	assert.Equal(t, programtest.ProdCache+"natsio/nats-operator:0.8.3", pod.Containers[0].Image)
	assert.Equal(t, "nats-operator", pod.ServiceAccountName)
	assert.Equal(t, map[string]string{"cloud.google.com/gke-nodepool": "system"}, pod.NodeSelector)

	for _, role := range prod.All(t, "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole") {
		for _, rule := range testkit.Object[rbacv1.ClusterRole](t, role).Rules {
			assert.NotEmpty(t, rule.ResourceNames, "a right over the whole cluster is for named objects only")
		}
	}
	for _, token := range []string{"ClusterRole", "Role"} {
		for _, role := range prod.All(t, "kubernetes:rbac.authorization.k8s.io/v1:"+token) {
			for _, rule := range testkit.Object[rbacv1.Role](t, role).Rules {
				assert.NotContains(t, strings.Join(append(rule.Verbs, rule.Resources...), " "), "*")
			}
		}
	}
}

func TestPodMonitoringOfNATS(t *testing.T) {
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:nats", func(nats any) { nats.(map[string]any)["metrics"] = true })
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	monitoring := testkit.Object[kube.PodMonitoring](t, recorder.One(t, testkit.PodMonitoring, "persia-nats-service"))
	assert.Equal(t, "nats-io", monitoring.Namespace)
	assert.Equal(t, map[string]string{"app": "nats", "nats_cluster": "persia-nats-service"}, monitoring.Spec.Selector.MatchLabels)
	assert.Equal(t, 7777, monitoring.Spec.Endpoints[0].Port.IntValue())
}
