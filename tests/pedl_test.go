package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/pulumitest"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// The credentials of PEDL in tests.
const (
	registryPassword = "registry-" + programtest.Password
	databasePassword = "database-" + programtest.Password
	externalPassword = "external-" + programtest.Password
)

// pedlStack is dev, with a system pool for PEDL, two pools beside that nothing else
// uses, and PEDL with settings by their paths.
func pedlStack(t *testing.T, settings map[string]any) map[string]string {
	t.Helper()
	configuration := programtest.ReadStack(t, "dev")
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		cluster.(map[string]any)["systemPool"] = map[string]any{"machineType": "n2-standard-16"}
	})
	pools := []any{}
	require.NoError(t, json.Unmarshal([]byte(configuration["persia:nodePools"]), &pools))
	text, err := json.Marshal(append(pools,
		map[string]any{"name": "pedl", "machineType": "g2-standard-8", "nodes": 2, "gpu": map[string]any{"type": "nvidia-l4", "count": 1},
			"taints": []any{map[string]any{"key": "team", "value": "ranking", "effect": "NoSchedule"}}},
		map[string]any{"name": "spare", "machineType": "n2-standard-16", "nodes": 1}))
	require.NoError(t, err)
	configuration["persia:nodePools"] = string(text)
	pedl := map[string]any{}
	write(pedl, "registry.password", registryPassword)
	if _, external := settings["postgresql.external"]; !external {
		write(pedl, "postgresql.postgresqlPassword", databasePassword)
	}
	for path, value := range settings {
		write(pedl, path, value)
	}
	text, err = json.Marshal(pedl)
	require.NoError(t, err)
	configuration["persia:pedl"] = string(text)
	return configuration
}

// write puts a value at a path of names.
func write(object map[string]any, path string, value any) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		object[name] = value
		return
	}
	if _, ok := object[name].(map[string]any); !ok {
		object[name] = map[string]any{}
	}
	write(object[name].(map[string]any), rest, value)
}

func deployPEDL(t *testing.T, settings map[string]any) *pulumitest.Recorder {
	t.Helper()
	recorder, err := programtest.Deploy(t, pedlStack(t, settings))
	require.NoError(t, err)
	return recorder
}

// place is where a setting lands: what it finds there, or nil.
type place func(*testing.T, *pulumitest.Recorder) any

// in is a field of an object.
func in(typeToken, name, path string) place {
	return func(t *testing.T, r *pulumitest.Recorder) any {
		for _, registration := range r.Some(typeToken) {
			if registration.Name == name {
				return pulumitest.Found(t, registration, path)
			}
		}
		return nil
	}
}

const (
	podPath       = "spec.template.spec."
	containerPath = podPath + "containers[0]."
)

// variableOf is the value of an environment variable of a workload's container.
func variableOf(typeToken, name, variable string) place {
	return func(t *testing.T, r *pulumitest.Recorder) any {
		list, _ := in(typeToken, name, containerPath+"env")(t, r).([]any)
		for _, element := range list {
			if e := element.(map[string]any); e["name"] == variable {
				return e["value"]
			}
		}
		return nil
	}
}

// pullCredential is a part of the credentials in the Secrets of both namespaces.
func pullCredential(server, part string) place {
	return func(t *testing.T, r *pulumitest.Recorder) any {
		var parts []any
		for _, name := range []string{"pedl-registry", "pedl-agents-registry"} {
			of := pulumitest.SecretOf(t, r, name)
			assert.Equal(t, corev1.SecretTypeDockerConfigJson, of.Type)
			var config struct {
				Auths map[string]map[string]any `json:"auths"`
			}
			require.NoError(t, json.Unmarshal(of.Data[corev1.DockerConfigJsonKey], &config))
			parts = append(parts, config.Auths[server][part])
		}
		assert.Equal(t, parts[0], parts[1])
		return parts[0]
	}
}

// masterSetting is a setting of the database in the master's configuration.
func masterSetting(name string) place {
	return func(t *testing.T, r *pulumitest.Recorder) any {
		var config struct {
			DB map[string]any `json:"db"`
		}
		require.NoError(t, yaml.Unmarshal(pulumitest.SecretOf(t, r, "pedl-master-config").Data["master.yaml"], &config))
		return config.DB[name]
	}
}

// databaseSecret is the password that PostgreSQL is made with.
func databaseSecret(t *testing.T, r *pulumitest.Recorder) any {
	return string(pulumitest.SecretOf(t, r, "pedl-postgresql").Data["postgresql-password"])
}

// dataVolume is the kind of volume that the data is on.
func dataVolume(t *testing.T, r *pulumitest.Recorder) any {
	volume := in(pulumitest.StatefulSet, "pedl-postgresql", podPath+"volumes[0]")(t, r).(map[string]any)
	assert.Equal(t, "data", volume["name"])
	if claim, ok := volume["persistentVolumeClaim"].(map[string]any); ok {
		return claim["claimName"]
	}
	return "emptyDir"
}

// both is a setting that lands in two places.
func both(first, second place) place {
	return func(t *testing.T, r *pulumitest.Recorder) any {
		assert.Equal(t, first(t, r), second(t, r))
		return first(t, r)
	}
}

type (
	list   = []any
	fields = map[string]any
)

var (
	gpuToleration   = fields{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
	agentToleration = fields{"key": "determined.ai/pedl-agent", "value": "present", "effect": "NoSchedule"}
	teamToleration  = fields{"key": "team", "operator": "Equal", "value": "ranking", "effect": "NoSchedule"}
)

// row is a parameter of PEDL's chart: what is there by default and where, and what is
// there with an override.
type row struct {
	parameter string
	where     place
	byDefault any
	override  any
	// with are other settings that the override needs.
	with fields
	// want is what is there then, if that is not the override.
	want any
}

// rows are both tables of the chart's parameters, in their order.
var rows = []row{
	{parameter: "masterImage", where: in(pulumitest.Deployment, "pedl-master", containerPath+"image"),
		byDefault: "determinedai/pedl-master", override: "registry.example.com/master:1"},
	{parameter: "agentImage", where: in(pulumitest.DaemonSet, "pedl-agent", containerPath+"image"),
		byDefault: "determinedai/pedl-agent", override: "registry.example.com/agent:1"},
	{parameter: "agent.enableCPUScheduling", where: variableOf(pulumitest.DaemonSet, "pedl-agent", "PEDL_ENABLE_CPU_SCHEDULING"),
		byDefault: "false", override: true, want: "true"},
	{parameter: "agent.env", where: variableOf(pulumitest.DaemonSet, "pedl-agent", "HTTPS_PROXY"),
		override: list{fields{"name": "HTTPS_PROXY", "value": "http://proxy"}}, want: "http://proxy"},
	{parameter: "agent.resources", where: in(pulumitest.DaemonSet, "pedl-agent", containerPath+"resources"),
		byDefault: fields{"limits": fields{"cpu": "1", "memory": "2Gi"}, "requests": fields{"cpu": "100m", "memory": "256Mi"}},
		override:  fields{"limits": fields{"cpu": "2", "memory": "4Gi"}, "requests": fields{"cpu": "1", "memory": "1Gi"}}},
	{parameter: "agent.tolerations", where: in(pulumitest.DaemonSet, "pedl-agent", podPath+"tolerations"),
		byDefault: list{agentToleration, gpuToleration},
		override:  list{teamToleration}, want: list{agentToleration, teamToleration}},
	{parameter: "trialRunner.network", where: variableOf(pulumitest.DaemonSet, "pedl-agent", "PEDL_TRIAL_RUNNER_NETWORK"),
		byDefault: "default", override: "host"},
	{parameter: "trialRunner.uid", where: variableOf(pulumitest.DaemonSet, "pedl-agent", "PEDL_TRIAL_RUNNER_UID"),
		override: 0, want: "0"},
	{parameter: "trialRunner.gid", where: variableOf(pulumitest.DaemonSet, "pedl-agent", "PEDL_TRIAL_RUNNER_GID"),
		override: 1000, want: "1000"},
	{parameter: "imagePullPolicy", where: both(in(pulumitest.Deployment, "pedl-master", containerPath+"imagePullPolicy"), in(pulumitest.DaemonSet, "pedl-agent", containerPath+"imagePullPolicy")),
		byDefault: "IfNotPresent", override: "Always"},
	{parameter: "resources", where: in(pulumitest.Deployment, "pedl-master", containerPath+"resources"),
		byDefault: fields{"limits": fields{"cpu": "8", "memory": "16Gi"}, "requests": fields{"cpu": "4", "memory": "8Gi"}},
		override:  fields{"limits": fields{"cpu": "2", "memory": "4Gi"}, "requests": fields{"cpu": "1", "memory": "1Gi"}}},
	{parameter: "tolerations", where: in(pulumitest.Deployment, "pedl-master", podPath+"tolerations"), override: list{teamToleration}},
	{parameter: "nodeSelector", where: in(pulumitest.Deployment, "pedl-master", podPath+"nodeSelector"),
		byDefault: fields{"cloud.google.com/gke-nodepool": "system"},
		override:  fields{"disk": "ssd"}, want: fields{"cloud.google.com/gke-nodepool": "system", "disk": "ssd"}},
	{parameter: "registry.server", where: pullCredential("registry.example.com", "username"),
		override: "registry.example.com", want: "determinedaicustomer"},
	{parameter: "registry.user", where: pullCredential("https://index.docker.io/v1/", "username"),
		byDefault: "determinedaicustomer", override: "me"},
	{parameter: "registry.password", where: pullCredential("https://index.docker.io/v1/", "password"),
		byDefault: registryPassword, override: "another-" + programtest.Password},
	{parameter: "registry.email", where: pullCredential("https://index.docker.io/v1/", "email"),
		byDefault: "hello@determined.ai", override: "me@example.com"},
	{parameter: "service.type", where: in(pulumitest.Service, "pedl-master", "spec.type"), byDefault: "ClusterIP", override: "NodePort"},
	{parameter: "service.port", where: both(in(pulumitest.Service, "pedl-master", "spec.ports[0].port"), number(variableOf(pulumitest.DaemonSet, "pedl-agent", "PEDL_MASTER_PORT"))),
		byDefault: 8080.0, override: 80, want: 80.0},
	{parameter: "service.externalIPs", where: in(pulumitest.Service, "pedl-master", "spec.externalIPs"), override: list{"203.0.113.7"}},
	{parameter: "service.nodePort", where: in(pulumitest.Service, "pedl-master", "spec.ports[0].nodePort"),
		override: 30080, want: 30080.0, with: fields{"service.type": "NodePort"}},
	{parameter: "service.clusterIP", where: in(pulumitest.Service, "pedl-master", "spec.clusterIP"), override: "10.1.0.7"},
	{parameter: "service.loadBalancerIP", where: in(pulumitest.Service, "pedl-master", "spec.loadBalancerIP"),
		override: "203.0.113.8", with: fields{"service.type": "LoadBalancer"}},
	{parameter: "service.loadBalancerSourceRanges", where: in(pulumitest.Service, "pedl-master", "spec.loadBalancerSourceRanges"),
		override: list{"203.0.113.0/24"}, with: fields{"service.type": "LoadBalancer"}},
	{parameter: "service.annotations", where: in(pulumitest.Service, "pedl-master", "metadata.annotations"), override: fields{"networking.gke.io/load-balancer-type": "Internal"}},
	{parameter: "ingress.enabled", where: in(pulumitest.Ingress, "pedl-master", "spec.rules[0].http.paths[0].backend.service.name"), override: true, want: "pedl-master"},
	{parameter: "ingress.annotations", where: in(pulumitest.Ingress, "pedl-master", "metadata.annotations"),
		override: fields{"kubernetes.io/ingress.class": "gce-internal"}, with: fields{"ingress.enabled": true}},
	{parameter: "ingress.hosts", where: in(pulumitest.Ingress, "pedl-master", "spec.rules[0].host"),
		override: list{"pedl.example.com"}, want: "pedl.example.com", with: fields{"ingress.enabled": true}},
	{parameter: "ingress.tls", where: in(pulumitest.Ingress, "pedl-master", "spec.tls"),
		override: list{fields{"hosts": list{"pedl.example.com"}, "secretName": "pedl-tls"}}, with: fields{"ingress.enabled": true}},

	{parameter: "postgresql.image.registry", where: imagePart(0), byDefault: "docker.io", override: "registry.example.com"},
	{parameter: "postgresql.image.repository", where: imagePart(1), byDefault: "bitnami/postgresql", override: "bitnamilegacy/postgresql"},
	{parameter: "postgresql.image.tag", where: imagePart(2), byDefault: "10.8.0", override: "11.2.0"},
	{parameter: "postgresql.image.pullPolicy", where: in(pulumitest.StatefulSet, "pedl-postgresql", containerPath+"imagePullPolicy"),
		byDefault: "IfNotPresent", override: "Always"},
	{parameter: "postgresql.image.pullSecrets", where: in(pulumitest.StatefulSet, "pedl-postgresql", podPath+"imagePullSecrets"), override: list{fields{"name": "mirror"}}},
	{parameter: "postgresql.resources", where: in(pulumitest.StatefulSet, "pedl-postgresql", containerPath+"resources"),
		byDefault: fields{"limits": fields{"cpu": "8", "memory": "32G"}, "requests": fields{"cpu": "4", "memory": "16G"}},
		override:  fields{"limits": fields{"cpu": "2", "memory": "4Gi"}, "requests": fields{"cpu": "1", "memory": "1Gi"}}},
	{parameter: "postgresql.postgresqlPassword", where: both(databaseSecret, masterSetting("password")),
		byDefault: databasePassword, override: "another-" + programtest.Password},
	{parameter: "postgresql.postgresqlDatabase", where: both(variableOf(pulumitest.StatefulSet, "pedl-postgresql", "POSTGRESQL_DATABASE"), masterSetting("name")),
		byDefault: "pedl", override: "trials"},
	{parameter: "postgresql.postgresqlInitdbArgs", where: variableOf(pulumitest.StatefulSet, "pedl-postgresql", "POSTGRESQL_INITDB_ARGS"), override: "--data-checksums"},
	{parameter: "postgresql.schedulerName", where: in(pulumitest.StatefulSet, "pedl-postgresql", podPath+"schedulerName"), override: "other"},
	{parameter: "postgresql.postgresqlExtendedConfig", where: in("kubernetes:core/v1:ConfigMap", "pedl-postgresql", `data["extended.conf"]`),
		byDefault: "max_connections = '2000'\nshared_buffers = '512MB'\n",
		override:  fields{"maxConnections": 50, "logStatement": "ddl"}, want: "log_statement = 'ddl'\nmax_connections = '50'\nshared_buffers = '512MB'\n"},
	{parameter: "postgresql.persistence.enabled", where: dataVolume, byDefault: "pedl-postgresql", override: false, want: "emptyDir"},
	{parameter: "postgresql.persistence.existingClaim", where: dataVolume, byDefault: "pedl-postgresql", override: "mine"},
	{parameter: "postgresql.persistence.storageClass", where: in(pulumitest.Claim, "pedl-postgresql", "spec.storageClassName"), byDefault: "", override: "premium-rwo"},
	{parameter: "postgresql.persistence.accessMode", where: both(in(pulumitest.Claim, "pedl-postgresql", "spec.accessModes"), in(pulumitest.Volume, "pedl-postgresql", "spec.accessModes")),
		byDefault: list{"ReadWriteOnce"}, override: "ReadWriteMany", want: list{"ReadWriteMany"},
		with: fields{"postgresql.persistence.nfs": fields{"server": "10.0.0.2", "path": "/pedl"}}},
	{parameter: "postgresql.persistence.annotations", where: both(in(pulumitest.Claim, "pedl-postgresql", "metadata.annotations"), in(pulumitest.Volume, "pedl-postgresql", "metadata.annotations")),
		override: fields{"example.com/backup": "daily"}},
	{parameter: "postgresql.persistence.size", where: both(in(pulumitest.Claim, "pedl-postgresql", "spec.resources.requests.storage"), in(pulumitest.Volume, "pedl-postgresql", "spec.capacity.storage")),
		byDefault: "100Gi", override: "200Gi"},
	{parameter: "postgresql.persistence.subPath", where: in(pulumitest.StatefulSet, "pedl-postgresql", containerPath+"volumeMounts[0].subPath"), override: "postgresql"},
	{parameter: "postgresql.persistence.mountPath", where: in(pulumitest.StatefulSet, "pedl-postgresql", containerPath+"volumeMounts[0].mountPath"),
		byDefault: "/bitnami/postgresql", override: "/data"},
	{parameter: "postgresql.service.externalIPs", where: in(pulumitest.Service, "pedl-postgresql", "spec.externalIPs"), override: list{"203.0.113.9"}},
	{parameter: "postgresql.service.port", where: both(in(pulumitest.Service, "pedl-postgresql", "spec.ports[0].port"), masterSetting("port")),
		byDefault: 5432.0, override: 5433, want: 5433.0},
}

// imagePart is the registry, the repository or the tag of PostgreSQL's image.
func imagePart(part int) place {
	return func(t *testing.T, r *pulumitest.Recorder) any {
		image := in(pulumitest.StatefulSet, "pedl-postgresql", containerPath+"image")(t, r).(string)
		registry, rest, _ := strings.Cut(image, "/")
		repository, tag, _ := strings.Cut(rest, ":")
		return []string{registry, repository, tag}[part]
	}
}

// number is a number that stands as a text.
func number(of place) place {
	return func(t *testing.T, r *pulumitest.Recorder) any {
		var n float64
		_, err := fmt.Sscan(of(t, r).(string), &n)
		require.NoError(t, err)
		return n
	}
}

// TestPEDLParameters goes through the chart's parameters: 29 of PEDL, and 21 of its
// PostgreSQL.
func TestPEDLParameters(t *testing.T) {
	require.Len(t, rows, 29+21)
	byDefault := deployPEDL(t, nil)
	for _, row := range rows {
		t.Run(row.parameter, func(t *testing.T) {
			assert.Equal(t, row.byDefault, row.where(t, byDefault), "by default")
			settings := fields{row.parameter: row.override}
			for parameter, value := range row.with {
				settings[parameter] = value
			}
			want := row.want
			if want == nil {
				want = row.override
			}
			assert.Equal(t, want, row.where(t, deployPEDL(t, settings)), "overridden")
		})
	}
}

// TestPEDLParametersAreDescribed: each parameter is a field of the configuration with a line
// in its reference.
func TestPEDLParametersAreDescribed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "configuration.md"))
	require.NoError(t, err)
	chapters := map[string]string{}
	for _, chapter := range strings.Split(string(text), "\n## ") {
		for _, section := range strings.Split(chapter, "\n### ") {
			title, body, _ := strings.Cut(section, "\n")
			chapters[title] = body
		}
	}
	for _, row := range rows {
		path := strings.Split("persia:pedl."+row.parameter, ".")
		parent, name := strings.Join(path[:len(path)-1], "."), path[len(path)-1]
		assert.Contains(t, chapters[parent], "\n| `"+name+"` |", row.parameter)
	}
}

// TestPEDLCredentials looks for credentials in everything that is registered, as they
// are and as Kubernetes writes them: they are in the data of Secrets, which Pulumi
// keeps as secrets, and nowhere else.
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
				text, err := json.Marshal(plain(registration.Inputs).Mappable())
				require.NoError(t, err)
				for _, written := range []string{registryPassword, databasePassword, externalPassword, programtest.Password} {
					pulumitest.AssertHides(t, registration.URN, string(text), written)
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

// plain is properties without those that are secret.
func plain(properties resource.PropertyMap) resource.PropertyMap {
	left := resource.PropertyMap{}
	for key, value := range properties {
		if !value.ContainsSecrets() {
			left[key] = value
		}
	}
	return left
}

// TestPEDLPlaces: who runs where, as whom, and after what.
func TestPEDLPlaces(t *testing.T) {
	r := deployPEDL(t, fields{"agent.nodePools": list{"pedl"}, "nodePool": "spare", "supportCheck": fields{"nodePool": "pedl"}})
	master := pulumitest.Object[appsv1.Deployment](t, r.One(t, pulumitest.Deployment, "pedl-master"))
	database := pulumitest.Object[appsv1.StatefulSet](t, r.One(t, pulumitest.StatefulSet, "pedl-postgresql"))
	agents := pulumitest.Object[appsv1.DaemonSet](t, r.One(t, pulumitest.DaemonSet, "pedl-agent"))
	checkJob := r.One(t, "kubernetes:batch/v1:Job", "test-pedl-support")
	assert.True(t, checkJob.RegisterRPC.GetDeleteBeforeReplace(), "pulumi up --replace runs the check again")
	check := pulumitest.Object[batchv1.Job](t, checkJob)
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
		assert.False(t, *pulumitest.Object[corev1.ServiceAccount](t, registered).AutomountServiceAccountToken)
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
	assert.Equal(t, "10.1.0.9", pulumitest.Object[corev1.ConfigMap](t, r.One(t, pulumitest.ConfigMap, "pedl-agent")).Data["PEDL_MASTER_HOST"])

	level := func(namespace string) string {
		return pulumitest.Object[corev1.Namespace](t, r.One(t, pulumitest.Namespace, namespace)).Labels["pod-security.kubernetes.io/enforce"]
	}
	assert.Equal(t, "baseline", level("pedl"))
	assert.Equal(t, "privileged", level("pedl-agents"))

	pool := r.One(t, pulumitest.NodePool, "persia-dev-pedl")
	assert.Equal(t, "present", pulumitest.At(t, pool, `nodeConfig.labels["determined.ai/pedl-agent"]`))
	assert.Equal(t, list{
		fields{"key": "team", "value": "ranking", "effect": "NO_SCHEDULE"},
		fields{"key": "determined.ai/pedl-agent", "value": "present", "effect": "NO_SCHEDULE"},
	}, pulumitest.At(t, pool, "nodeConfig.taints"))
	other := r.One(t, pulumitest.NodePool, "persia-dev-gpu")
	assert.Empty(t, pulumitest.At(t, other, "nodeConfig.taints"))
	assert.Nil(t, pulumitest.Found(t, other, `nodeConfig.labels["determined.ai/pedl-agent"]`))

	for after, before := range map[string][]string{
		"pedl-postgresql": {pulumitest.Claim + "::pedl-postgresql", pulumitest.NetworkPolicy + "::pedl-closed", pulumitest.NetworkPolicy + "::pedl-postgresql"},
	} {
		assertAfter(t, r, r.One(t, pulumitest.StatefulSet, after), before...)
	}
	assertAfter(t, r, r.One(t, pulumitest.Deployment, "pedl-master"), pulumitest.StatefulSet+"::pedl-postgresql", pulumitest.NetworkPolicy+"::pedl-master", "kubernetes:core/v1:Secret::pedl-registry")
	assertAfter(t, r, r.One(t, pulumitest.DaemonSet, "pedl-agent"), pulumitest.Deployment+"::pedl-master", pulumitest.NetworkPolicy+"::pedl-agents-closed", pulumitest.NetworkPolicy+"::pedl-agent")
}

// assertAfter sees to it that a resource comes after others, each TYPE::NAME.
func assertAfter(t *testing.T, r *pulumitest.Recorder, registration pulumitest.Resource, others ...string) {
	t.Helper()
	before := r.Before(registration)
	for _, other := range others {
		typeToken, name, _ := strings.Cut(other, "::")
		assert.True(t, before[r.One(t, typeToken, name).URN], "%s comes after %s", registration.URN, other)
	}
}

// TestPEDLTraffic lists all who speak with whom.
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
		policy := pulumitest.Object[networkingv1.NetworkPolicy](t, r.One(t, pulumitest.NetworkPolicy, name))
		assert.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, policy.Spec.PolicyTypes, name)
		in, out := pulumitest.Traffic(policy)
		assert.Equal(t, want, [2][]string{in, out}, name)
	}
	for host, to := range map[string]string{"10.0.0.3": "10.0.0.3/32", "db.example.com": "anywhere"} {
		r := deployPEDL(t, fields{"postgresql.external": fields{"host": host, "port": 6543, "user": "pedl", "database": "d", "password": externalPassword}})
		_, out := pulumitest.Traffic(pulumitest.Object[networkingv1.NetworkPolicy](t, r.One(t, pulumitest.NetworkPolicy, "pedl-master")))
		assert.Equal(t, "to "+to+" on TCP 6543", out[0])
		assert.Equal(t, []any{host, 6543.0, "pedl", "d", externalPassword},
			[]any{masterSetting("host")(t, r), masterSetting("port")(t, r), masterSetting("user")(t, r), masterSetting("name")(t, r), masterSetting("password")(t, r)})
		assert.Nil(t, in(pulumitest.StatefulSet, "pedl-postgresql", "spec")(t, r))
		assert.Nil(t, in(pulumitest.Claim, "pedl-postgresql", "spec")(t, r))
	}
}

// TestPEDLDatabaseIsKept: what is left when the stack goes.
func TestPEDLDatabaseIsKept(t *testing.T) {
	r := deployPEDL(t, nil)
	disk := r.One(t, pulumitest.Disk, "us-central1-a/persia-dev-pedl-postgresql")
	assert.Equal(t, "persia-dev-pedl-postgresql", pulumitest.At(t, disk, "name"))
	assert.True(t, disk.RegisterRPC.GetRetainOnDelete())
	assert.Equal(t, "Retain", pulumitest.At(t, r.One(t, pulumitest.Volume, "pedl-postgresql"), "spec.persistentVolumeReclaimPolicy"))
	assert.Equal(t, fields{"namespace": "pedl", "name": "pedl-postgresql", "apiVersion": "v1", "kind": "PersistentVolumeClaim"},
		pulumitest.At(t, r.One(t, pulumitest.Volume, "pedl-postgresql"), "spec.claimRef"))
	assert.False(t, r.One(t, pulumitest.Namespace, "pedl").RegisterRPC.GetRetainOnDelete())

	for _, settings := range []fields{{"postgresql.persistence.existingClaim": "mine"}, {"postgresql.persistence.storageClass": "premium-rwo"}} {
		r := deployPEDL(t, settings)
		assert.True(t, r.One(t, pulumitest.Namespace, "pedl").RegisterRPC.GetRetainOnDelete(), "a claim is in it")
		assert.False(t, r.One(t, pulumitest.Namespace, "pedl-agents").RegisterRPC.GetRetainOnDelete())
		for _, claim := range r.All(t, pulumitest.Claim) {
			if pulumitest.Object[corev1.PersistentVolumeClaim](t, claim).Namespace == "pedl" {
				assert.True(t, claim.RegisterRPC.GetRetainOnDelete())
			}
		}
	}

	label := map[string]any{"persia-stack": programtest.ThisStack}
	found, err := programtest.DeployOver(t, pedlStack(t, nil), cloud{"projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql": {
		"id": "d", "size": 100, "effectiveLabels": label, "type": "https://c/zones/us-central1-a/diskTypes/pd-balanced", "diskEncryptionKeys": list{}}})
	require.NoError(t, err)
	assert.Equal(t, "projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql",
		found.One(t, pulumitest.Disk, "us-central1-a/persia-dev-pedl-postgresql").RegisterRPC.GetImportId())
	_, err = programtest.DeployOver(t, pedlStack(t, nil), cloud{"projects/my-project/zones/us-central1-a/disks/persia-dev-pedl-postgresql": {
		"id": "d", "size": 100, "effectiveLabels": fields{}, "type": "https://c/zones/us-central1-a/diskTypes/pd-balanced", "diskEncryptionKeys": list{}}})
	assert.ErrorContains(t, err, "persia:pedl.postgresql.persistence.persistentDisk: Invalid value")
}

// TestWithoutPEDL: nothing is registered for {}, which is what Pulumi.yaml gives.
func TestWithoutPEDL(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	configuration["persia:pedl"] = "{}"
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	assert.Equal(t, programtest.DeployStack(t, "dev").URNs(), recorder.URNs())
}

// TestPEDLDocumented deploys the stack that the page begins with.
func TestPEDLDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "pedl.md"))
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
	assert.Equal(t, "determinedai/pedl-master:0.9.0", in(pulumitest.Deployment, "pedl-master", containerPath+"image")(t, recorder))
}

// TestPEDLURNs keeps the names of PEDL's resources.
func TestPEDLURNs(t *testing.T) {
	r := deployPEDL(t, fields{"ingress.enabled": true, "supportCheck": fields{"nodePool": "pedl"}})
	without := programtest.DeployStack(t, "dev").URNs()
	urns := slices.DeleteFunc(r.URNs(), func(urn string) bool { return slices.Contains(without, urn) || strings.Contains(urn, "nodePool") })
	got, golden := strings.Join(urns, "\n")+"\n", filepath.Join("testdata", "pedl.urns")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./tests -update writes it anew")
}
