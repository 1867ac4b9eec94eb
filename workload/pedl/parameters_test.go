package pedl_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// lookup finds the place of a setting, and returns its value there, or nil.
type lookup func(*testing.T, *testkit.Recorder) any

// in returns a field of an object.
func in(typeToken, name, path string) lookup {
	return func(t *testing.T, r *testkit.Recorder) any {
		for _, registration := range r.Some(typeToken) {
			if registration.Name == name {
				return testkit.Found(t, registration, path)
			}
		}
		return nil
	}
}

const (
	podPath       = "spec.template.spec."
	containerPath = podPath + "containers[0]."
)

// variableOf returns the value of an environment variable of a workload's container.
func variableOf(typeToken, name, variable string) lookup {
	return func(t *testing.T, r *testkit.Recorder) any {
		list, _ := in(typeToken, name, containerPath+"env")(t, r).([]any)
		for _, element := range list {
			if e := element.(map[string]any); e["name"] == variable {
				return e["value"]
			}
		}
		return nil
	}
}

// pullCredential returns a part of the credentials in the Secrets of both namespaces.
func pullCredential(server, part string) lookup {
	return func(t *testing.T, r *testkit.Recorder) any {
		var parts []any
		for _, name := range []string{"pedl-registry", "pedl-agents-registry"} {
			of := secretOf(t, r, name)
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

// masterSetting returns a setting of the database in the master's configuration.
func masterSetting(name string) lookup {
	return func(t *testing.T, r *testkit.Recorder) any {
		var config struct {
			DB map[string]any `json:"db"`
		}
		require.NoError(t, yaml.Unmarshal(secretOf(t, r, "pedl-master-config").Data["master.yaml"], &config))
		return config.DB[name]
	}
}

// databaseSecret returns the password that PostgreSQL is made with.
func databaseSecret(t *testing.T, r *testkit.Recorder) any {
	return string(secretOf(t, r, "pedl-postgresql").Data["postgresql-password"])
}

// dataVolume returns the kind of volume that the data is on.
func dataVolume(t *testing.T, r *testkit.Recorder) any {
	volume := in(testkit.StatefulSet, "pedl-postgresql", podPath+"volumes[0]")(t, r).(map[string]any)
	assert.Equal(t, "data", volume["name"])
	if claim, ok := volume["persistentVolumeClaim"].(map[string]any); ok {
		return claim["claimName"]
	}
	return "emptyDir"
}

// both returns a setting that has two places.
func both(first, second lookup) lookup {
	return func(t *testing.T, r *testkit.Recorder) any {
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

// row is a parameter of PEDL's chart: its place and default, and its value with an override.
type row struct {
	parameter string
	where     lookup
	byDefault any
	override  any
	// with are other settings that the override needs.
	with fields
	// want is the value with the override, if it differs from the override.
	want any
	// existing says that only a cluster that the stack does not create takes the override.
	existing bool
}

// rows are both tables of the chart's parameters, in their order.
var rows = []row{
	{parameter: "masterImage", where: in(testkit.Deployment, "pedl-master", containerPath+"image"),
		byDefault: "determinedai/pedl-master", override: "registry.example.com/master:1"},
	{parameter: "agentImage", where: in(testkit.DaemonSet, "pedl-agent", containerPath+"image"),
		byDefault: "determinedai/pedl-agent", override: "registry.example.com/agent:1"},
	{parameter: "agent.enableCPUScheduling", where: variableOf(testkit.DaemonSet, "pedl-agent", "PEDL_ENABLE_CPU_SCHEDULING"),
		byDefault: "false", override: true, want: "true"},
	{parameter: "agent.env", where: variableOf(testkit.DaemonSet, "pedl-agent", "HTTPS_PROXY"),
		override: list{fields{"name": "HTTPS_PROXY", "value": "http://proxy"}}, want: "http://proxy"},
	{parameter: "agent.resources", where: in(testkit.DaemonSet, "pedl-agent", containerPath+"resources"),
		byDefault: fields{"limits": fields{"cpu": "1", "memory": "2Gi"}, "requests": fields{"cpu": "100m", "memory": "256Mi"}},
		override:  fields{"limits": fields{"cpu": "2", "memory": "4Gi"}, "requests": fields{"cpu": "1", "memory": "1Gi"}}},
	{parameter: "agent.tolerations", where: in(testkit.DaemonSet, "pedl-agent", podPath+"tolerations"),
		byDefault: list{agentToleration, gpuToleration},
		override:  list{teamToleration}, want: list{agentToleration, teamToleration}},
	{parameter: "trialRunner.network", where: variableOf(testkit.DaemonSet, "pedl-agent", "PEDL_TRIAL_RUNNER_NETWORK"),
		byDefault: "default", override: "host"},
	{parameter: "trialRunner.uid", where: variableOf(testkit.DaemonSet, "pedl-agent", "PEDL_TRIAL_RUNNER_UID"), override: 0, want: "0"},
	{parameter: "trialRunner.gid", where: variableOf(testkit.DaemonSet, "pedl-agent", "PEDL_TRIAL_RUNNER_GID"),
		override: 1000, want: "1000"},
	{parameter: "imagePullPolicy", where: both(in(testkit.Deployment, "pedl-master", containerPath+"imagePullPolicy"), in(testkit.DaemonSet, "pedl-agent", containerPath+"imagePullPolicy")),
		byDefault: "IfNotPresent", override: "Always"},
	{parameter: "resources", where: in(testkit.Deployment, "pedl-master", containerPath+"resources"),
		byDefault: fields{"limits": fields{"cpu": "8", "memory": "16Gi"}, "requests": fields{"cpu": "4", "memory": "8Gi"}},
		override:  fields{"limits": fields{"cpu": "2", "memory": "4Gi"}, "requests": fields{"cpu": "1", "memory": "1Gi"}}},
	{parameter: "tolerations", where: in(testkit.Deployment, "pedl-master", podPath+"tolerations"), override: list{teamToleration}},
	{parameter: "nodeSelector", where: in(testkit.Deployment, "pedl-master", podPath+"nodeSelector"),
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
	{parameter: "service.type", where: in(testkit.Service, "pedl-master", "spec.type"), byDefault: "ClusterIP", override: "NodePort"},
	{parameter: "service.port", where: both(in(testkit.Service, "pedl-master", "spec.ports[0].port"), number(variableOf(testkit.DaemonSet, "pedl-agent", "PEDL_MASTER_PORT"))),
		byDefault: 8080.0, override: 80, want: 80.0},
	{parameter: "service.externalIPs", where: in(testkit.Service, "pedl-master", "spec.externalIPs"), override: list{"203.0.113.7"}, existing: true},
	{parameter: "service.nodePort", where: in(testkit.Service, "pedl-master", "spec.ports[0].nodePort"),
		override: 30080, want: 30080.0, with: fields{"service.type": "NodePort"}},
	{parameter: "service.clusterIP", where: in(testkit.Service, "pedl-master", "spec.clusterIP"), override: "10.1.0.7"},
	{parameter: "service.loadBalancerIP", where: in(testkit.Service, "pedl-master", "spec.loadBalancerIP"),
		override: "203.0.113.8", with: fields{"service.type": "LoadBalancer", "service.loadBalancerSourceRanges": list{"203.0.113.0/24"}}},
	{parameter: "service.loadBalancerSourceRanges", where: in(testkit.Service, "pedl-master", "spec.loadBalancerSourceRanges"),
		override: list{"203.0.113.0/24"}, with: fields{"service.type": "LoadBalancer"}},
	{parameter: "service.annotations", where: in(testkit.Service, "pedl-master", "metadata.annotations"), override: fields{"networking.gke.io/load-balancer-type": "Internal"}},
	{parameter: "ingress.enabled", where: in(testkit.Ingress, "pedl-master", "spec.rules[0].http.paths[0].backend.service.name"), override: true, want: "pedl-master"},
	{parameter: "ingress.annotations", where: in(testkit.Ingress, "pedl-master", "metadata.annotations"),
		override: fields{"kubernetes.io/ingress.class": "gce-internal"}, with: fields{"ingress.enabled": true}},
	{parameter: "ingress.hosts", where: in(testkit.Ingress, "pedl-master", "spec.rules[0].host"),
		override: list{"pedl.example.com"}, want: "pedl.example.com", with: fields{"ingress.enabled": true}},
	{parameter: "ingress.tls", where: in(testkit.Ingress, "pedl-master", "spec.tls"),
		override: list{fields{"hosts": list{"pedl.example.com"}, "secretName": "pedl-tls"}}, with: fields{"ingress.enabled": true}},

	{parameter: "postgresql.image.registry", where: imagePart(0), byDefault: "docker.io", override: "registry.example.com"},
	{parameter: "postgresql.image.repository", where: imagePart(1), byDefault: "bitnamilegacy/postgresql", override: "bitnami/postgresql"},
	{parameter: "postgresql.image.tag", where: imagePart(2), byDefault: "10.23.0-debian-11-r3", override: "10.8.0"},
	{parameter: "postgresql.image.pullPolicy", where: in(testkit.StatefulSet, "pedl-postgresql", containerPath+"imagePullPolicy"),
		byDefault: "IfNotPresent", override: "Always"},
	{parameter: "postgresql.image.pullSecrets", where: in(testkit.StatefulSet, "pedl-postgresql", podPath+"imagePullSecrets"), override: list{fields{"name": "mirror"}}},
	{parameter: "postgresql.resources", where: in(testkit.StatefulSet, "pedl-postgresql", containerPath+"resources"),
		byDefault: fields{"limits": fields{"cpu": "8", "memory": "32G"}, "requests": fields{"cpu": "4", "memory": "16G"}},
		override:  fields{"limits": fields{"cpu": "2", "memory": "4Gi"}, "requests": fields{"cpu": "1", "memory": "1Gi"}}},
	{parameter: "postgresql.postgresqlPassword", where: both(databaseSecret, masterSetting("password")),
		byDefault: databasePassword, override: "another-" + programtest.Password},
	{parameter: "postgresql.postgresqlDatabase", where: both(variableOf(testkit.StatefulSet, "pedl-postgresql", "POSTGRESQL_DATABASE"), masterSetting("name")),
		byDefault: "pedl", override: "trials"},
	{parameter: "postgresql.postgresqlInitdbArgs", where: variableOf(testkit.StatefulSet, "pedl-postgresql", "POSTGRESQL_INITDB_ARGS"), override: "--data-checksums"},
	{parameter: "postgresql.schedulerName", where: in(testkit.StatefulSet, "pedl-postgresql", podPath+"schedulerName"), override: "other"},
	{parameter: "postgresql.postgresqlExtendedConfig", where: in("kubernetes:core/v1:ConfigMap", "pedl-postgresql", `data["extended.conf"]`),
		byDefault: "max_connections = '2000'\nshared_buffers = '512MB'\n",
		override:  fields{"maxConnections": 50, "logStatement": "ddl"}, want: "log_statement = 'ddl'\nmax_connections = '50'\nshared_buffers = '512MB'\n"},
	{parameter: "postgresql.persistence.enabled", where: dataVolume, byDefault: "pedl-postgresql", override: false, want: "emptyDir"},
	{parameter: "postgresql.persistence.existingClaim", where: dataVolume, byDefault: "pedl-postgresql", override: "mine"},
	{parameter: "postgresql.persistence.storageClass", where: in(testkit.Claim, "pedl-postgresql", "spec.storageClassName"), byDefault: "", override: "premium-rwo"},
	{parameter: "postgresql.persistence.accessMode", where: both(in(testkit.Claim, "pedl-postgresql", "spec.accessModes"), in(testkit.Volume, "pedl-postgresql", "spec.accessModes")),
		byDefault: list{"ReadWriteOnce"}, override: "ReadWriteMany", want: list{"ReadWriteMany"},
		with: fields{"postgresql.persistence.nfs": fields{"server": "10.0.0.2", "path": "/pedl"}}},
	{parameter: "postgresql.persistence.annotations", where: both(in(testkit.Claim, "pedl-postgresql", "metadata.annotations"), in(testkit.Volume, "pedl-postgresql", "metadata.annotations")),
		override: fields{"example.com/backup": "daily"}},
	{parameter: "postgresql.persistence.size", where: both(in(testkit.Claim, "pedl-postgresql", "spec.resources.requests.storage"), in(testkit.Volume, "pedl-postgresql", "spec.capacity.storage")),
		byDefault: "100Gi", override: "200Gi"},
	{parameter: "postgresql.persistence.subPath", where: in(testkit.StatefulSet, "pedl-postgresql", containerPath+"volumeMounts[0].subPath"), override: "postgresql"},
	{parameter: "postgresql.persistence.mountPath", where: in(testkit.StatefulSet, "pedl-postgresql", containerPath+"volumeMounts[0].mountPath"),
		byDefault: "/bitnami/postgresql", override: "/data"},
	{parameter: "postgresql.service.externalIPs", where: in(testkit.Service, "pedl-postgresql", "spec.externalIPs"), override: list{"203.0.113.9"}, existing: true},
	{parameter: "postgresql.service.port", where: both(in(testkit.Service, "pedl-postgresql", "spec.ports[0].port"), masterSetting("port")),
		byDefault: 5432.0, override: 5433, want: 5433.0},
}

// imagePart returns the registry, the repository or the tag of PostgreSQL's image.
func imagePart(part int) lookup {
	return func(t *testing.T, r *testkit.Recorder) any {
		image := in(testkit.StatefulSet, "pedl-postgresql", containerPath+"image")(t, r).(string)
		registry, rest, _ := strings.Cut(image, "/")
		repository, tag, _ := strings.Cut(rest, ":")
		return []string{registry, repository, tag}[part]
	}
}

// number returns a number written as text.
func number(of lookup) lookup {
	return func(t *testing.T, r *testkit.Recorder) any {
		var n float64
		testkit.Must(fmt.Sscan(of(t, r).(string), &n))(t)
		return n
	}
}

// TestPEDLParameters checks the chart's parameters: 29 of PEDL, and 21 of its PostgreSQL.
func TestPEDLParameters(t *testing.T) {
	require.Len(t, rows, 29+21)
	byDefault := deployPEDL(t, nil)
	for _, row := range rows {
		t.Run(row.parameter, func(t *testing.T) {
			assert.Equal(t, row.byDefault, row.where(t, byDefault), "by default")
			settings := fields{row.parameter: row.override}
			maps.Copy(settings, row.with)
			want := row.want
			if want == nil {
				want = row.override
			}
			deploy := deployPEDL
			if row.existing {
				deploy = deployOnExisting
			}
			assert.Equal(t, want, row.where(t, deploy(t, settings)), "overridden")
		})
	}
}

// secretOf is a Secret whose data is a secret of Pulumi's.
func secretOf(t *testing.T, r *testkit.Recorder, name string) corev1.Secret {
	t.Helper()
	registration := r.One(t, "kubernetes:core/v1:Secret", name)
	inputs := registration.Inputs.Copy()
	inputs["data"] = inputs["data"].SecretValue().Element
	registration.Inputs = inputs
	return testkit.Object[corev1.Secret](t, registration)
}
