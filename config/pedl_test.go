package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/internal/testkit"
)

// withPEDL returns edits for the base stack with a PEDL that fits its system pool.
func withPEDL(changes edits) edits {
	e := edits{
		"persia:pedl": edits{
			"registry":   edits{"password": "r"},
			"postgresql": edits{"postgresqlPassword": "p"},
		},
		"persia:cluster.systemPool": edits{"machineType": "n2-standard-16"},
	}
	return e.And(changes)
}

// pedlPool returns a pool for PEDL alone.
func pedlPool(fields edits) edits {
	return edits{"persia:nodePools[3]": edits{"name": "pedl", "machineType": "g2-standard-8", "nodes": 2,
		"gpu": edits{"type": "nvidia-l4", "count": 1}}.And(fields)}
}

// pedlOnExisting returns edits for the base stack and PEDL on an existing cluster.
func pedlOnExisting(changes edits) edits {
	return withPEDL(edits{
		"persia:project": nil, "persia:nodePools[0].gpu": nil, "persia:nodePools[0].machineType": "n2-highmem-128",
		"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 80, "memory": "600Gi"}},
		"persia:nodePools[1].labels":        nil,
		"persia:nvidiaDriver.installer":     "managed",
		"persia:cluster.systemPool":         nil,
		"persia:cluster":                    edits{"name": "shared", "existing": edits{"context": "c", "systemPool": "ps"}},
		"persia:nodePools[2].nodes":         2,
	}).And(changes)
}

const (
	pg     = "persia:pedl.postgresql"
	onDisk = pg + ".persistence"
)

func TestPEDLRefused(t *testing.T) {
	external := edits{"host": "10.0.0.3", "password": "e"}
	testkit.Refused(t, []testkit.Refusal{
		// Credentials.
		{"registry password missing", withPEDL(edits{"persia:pedl.registry.password": nil}),
			"persia:pedl.registry.password", []string{"Required", "pulumi config set --secret --path 'persia:pedl.registry.password'"}},
		{"database password missing", withPEDL(edits{pg + ".postgresqlPassword": nil}),
			pg + ".postgresqlPassword", []string{"Required", "pulumi config set --secret --path 'persia:pedl.postgresql.postgresqlPassword'"}},
		{"password of an external database missing", withPEDL(edits{pg: edits{"external": edits{"host": "db"}}}),
			pg + ".external.password", []string{"pulumi config set --secret --path 'persia:pedl.postgresql.external.password'"}},
		{"password of several lines", withPEDL(edits{"persia:pedl.registry.password": "a\n"}), "persia:pedl.registry.password", []string{"must be a single line"}},

		// Master.
		{"image with a space", withPEDL(edits{"persia:pedl.masterImage": "a b"}), "persia:pedl.masterImage", []string{`"a b"`, "must be an image reference"}},
		{"pool of the master unknown", withPEDL(edits{"persia:pedl.nodePool": "no"}), "persia:pedl.nodePool", []string{`"no"`, `write "training", or write "loaders", or write "ps", or write "system"`}},
		{"master too large", withPEDL(edits{"persia:pedl.resources": edits{"requests": edits{"cpu": 40}}}),
			"persia:cluster.systemPool.machineType", []string{"CPU for a pod of PEDL master"}},

		// Access to the master.
		{"external address", pedlOnExisting(edits{onDisk: edits{"existingClaim": "mine"}, "persia:pedl.service": edits{"externalIPs": []any{"a.example.com"}}}),
			"persia:pedl.service.externalIPs[0]", []string{"an address like"}},
		{"load balancer for everybody", withPEDL(edits{"persia:pedl.service": edits{"type": "LoadBalancer"}}),
			"persia:pedl.service.loadBalancerSourceRanges", []string{"Required", "admits everyone", "networking.gke.io/load-balancer-type: Internal"}},

		{"load balancer for the world", withPEDL(edits{"persia:pedl.service": edits{"type": "LoadBalancer", "loadBalancerSourceRanges": []any{"203.0.113.0/24", "0.0.0.0/0"}}}),
			"persia:pedl.service.loadBalancerSourceRanges[1]", []string{`"0.0.0.0/0"`, "opens the master to the world", "/8 or smaller"}},

		// Agents.
		{"agents on an unknown pool", withPEDL(edits{"persia:pedl.agent": edits{"nodePools": []any{"no"}}}),
			"persia:pedl.agent.nodePools[0]", []string{"must be one of the stack's node pools; there are training, loaders and ps"}},
		{"agents on a pool with a role", withPEDL(edits{"persia:pedl.agent": edits{"nodePools": []any{"ps"}}}),
			"persia:pedl.agent.nodePools[0]", []string{"is also the nodePool of other pods", "nodes to themselves"}},
		{"the label of agents on a pool with a role", withPEDL(edits{"persia:nodePools[2].labels": edits{"determined.ai/pedl-agent": "present"}}),
			"persia:nodePools[2].labels", []string{"label of PEDL's agents", "choose another pool"}},
		{"agents where the master is", withPEDL(pedlPool(nil)).And(edits{"persia:pedl.agent": edits{"nodePools": []any{"pedl"}}, "persia:pedl.nodePool": "pedl",
			"persia:pedl.resources": edits{"limits": edits{"cpu": 1, "memory": "1Gi"}}, pg + ".resources": edits{"limits": edits{"cpu": 1, "memory": "1Gi"}}}),
			"persia:pedl.agent.nodePools[0]", []string{"is also the nodePool of other pods", "nodes to themselves"}},
		{"agents where the NATS of a job is", withPEDL(pedlPool(nil)).And(edits{"persia:pedl.agent": edits{"nodePools": []any{"pedl"}}, "persia:jobs[0].nats": edits{"nodePool": "pedl"}}),
			"persia:pedl.agent.nodePools[0]", []string{"is also the nodePool of other pods", "nodes to themselves"}},
		{"agents on a pool that scales", withPEDL(pedlPool(edits{"nodes": nil, "autoscaling": edits{"minNodes": 0, "maxNodes": 2}})).And(edits{"persia:pedl.agent": edits{"nodePools": []any{"pedl"}}}),
			"persia:pedl.agent.nodePools[0]", []string{"has autoscaling", "set nodes instead"}},
		{"pools of an existing cluster", pedlOnExisting(edits{"persia:pedl.agent": edits{"nodePools": []any{"ps"}}, onDisk: edits{"storageClass": "fast"}}),
			"persia:pedl.agent.nodePools", []string{"kubectl label nodes -l cloud.google.com/gke-nodepool=POOL determined.ai/pedl-agent=present"}},
		{"agent variable twice", withPEDL(edits{"persia:pedl.agent": edits{"env": []any{edits{"name": "A", "value": "1"}, edits{"name": "A", "value": "2"}}}}),
			"persia:pedl.agent.env[1].name", []string{"is already used by persia:pedl.agent.env[0]"}},
		{"check of a pool without GPUs", withPEDL(edits{"persia:pedl.supportCheck": edits{"nodePool": "ps"}}), "persia:pedl.supportCheck.nodePool", []string{"has no GPUs"}},
		{"check of no pool", withPEDL(edits{"persia:pedl.supportCheck": edits{"nodePool": "x"}}), "persia:pedl.supportCheck.nodePool", []string{"must be one of"}},

		// PostgreSQL.
		{"database too large", withPEDL(edits{pg + ".resources": edits{"requests": edits{"memory": "300Gi"}}}),
			"persia:cluster.systemPool.machineType", []string{"memory for a pod of PEDL database"}},
		{"scheme in the registry", withPEDL(edits{pg + ".image": edits{"registry": "https://docker.io"}}), pg + ".image", []string{"https://docker.io", "tag of docker.io"}},
		{"tag", withPEDL(edits{pg + ".image": edits{"tag": "a b"}}), pg + ".image", []string{"must be an image reference"}},
		{"setting that is a list", withPEDL(edits{pg + ".postgresqlExtendedConfig": edits{"searchPath": []any{"a"}}}),
			pg + ".postgresqlExtendedConfig[searchPath]", []string{"must be a string, a number, or true or false"}},
		{"fsync off", withPEDL(edits{pg + ".postgresqlExtendedConfig": edits{"fsync": "off"}}),
			pg + ".postgresqlExtendedConfig[fsync]", []string{`"off"`, "may destroy the database", "synchronousCommit: off"}},
		{"pages written in part", withPEDL(edits{pg + ".postgresqlExtendedConfig": edits{"fullPageWrites": false}}),
			pg + ".postgresqlExtendedConfig[fullPageWrites]", []string{`"false"`, "may destroy the database"}},
		{"external database beside an own one", withPEDL(edits{pg: edits{"external": external, "postgresqlPassword": "p"}}),
			pg + ".postgresqlPassword", []string{"external database", "write only external"}},

		{"external host", withPEDL(edits{pg: edits{"external": edits{"host": "a b", "password": "e"}}}), pg + ".external.host", []string{"like 10.0.0.2"}},
		// Storage.
		{"two places", withPEDL(edits{onDisk: edits{"existingClaim": "a", "storageClass": "b"}}), onDisk + ".storageClass", []string{"existingClaim is already set; remove one of them"}},
		{"size for a class", withPEDL(edits{onDisk: edits{"storageClass": "b", "size": "much"}}), onDisk + ".size", []string{`"much"`}},
		{"class and source", withPEDL(edits{onDisk: edits{"storageClass": "b", "nfs": edits{"server": "s", "path": "/a"}}}),
			onDisk + ".nfs", []string{"storageClass is already set; remove one of them"}},
		{"a place that is not used", withPEDL(edits{onDisk: edits{"enabled": false, "existingClaim": "a"}}), onDisk + ".existingClaim", []string{"enabled is false"}},
		{"no place on an existing cluster", pedlOnExisting(nil), onDisk + ".storageClass", []string{"Required", "storageClass, existingClaim, or a source"}},
		{"database in a bucket", withPEDL(edits{onDisk: edits{"gcsFuse": edits{"bucket": "bucket"}}}), onDisk + ".gcsFuse", []string{"cannot hold a database"}},
		{"database in a directory of several nodes", withPEDL(edits{onDisk: edits{"hostPath": edits{"path": "/pedl"}}}), onDisk + ".hostPath", []string{"up to 2 nodes (pools system)"}},
		{"disk for many", withPEDL(edits{onDisk: edits{"accessMode": "ReadWriteMany"}}), onDisk + ".accessMode", []string{"is not supported by a disk"}},
		{"volume of the database's name", withPEDL(edits{"persia:storage[1]": edits{"name": "pedl-postgresql", "size": "1Gi", "nfs": edits{"server": "s", "path": "/a"}}}),
			"persia:storage[1].name", []string{"volume of PEDL's database"}},
		{"volume over the database's source", withPEDL(edits{"persia:storage[1]": edits{"name": "b", "size": "1Gi", "nfs": edits{"server": "s", "path": "/a"}}, onDisk: edits{"nfs": edits{"server": "s", "path": "/a"}}}),
			onDisk, []string{"is already the storage of persia:storage[1]"}},
		{"path of the data relative", withPEDL(edits{onDisk: edits{"mountPath": "data"}}), onDisk + ".mountPath", []string{"write /data"}},
		{"path in the volume absolute", withPEDL(edits{onDisk: edits{"subPath": "/a"}}), onDisk + ".subPath", []string{"without a leading /"}},
	})
}

// TestPEDLCapacity checks that the plan counts all parts of PEDL.
func TestPEDLCapacity(t *testing.T) {
	_, err := testkit.Load(t, withPEDL(edits{
		"persia:cluster.systemPool.machineType": "n2-standard-8",
		"persia:pedl.resources":                 edits{"requests": edits{"cpu": 7}},
		pg + ".resources":                       edits{"requests": edits{"cpu": 7}},
	}))
	require.ErrorContains(t, err, "persia:cluster.systemPool.nodes")
	for _, text := range []string{"1 × PEDL master", "1 × PEDL database"} {
		assert.ErrorContains(t, err, text)
	}
	s := testkit.Must(testkit.Load(t, withPEDL(pedlPool(nil)).And(edits{
		"persia:pedl.agent":        edits{"nodePools": []any{"pedl"}, "resources": edits{"requests": edits{"cpu": 1}}},
		"persia:pedl.supportCheck": edits{"nodePool": "pedl"},
	})))(t)
	var with int64
	for _, pool := range s.Plan().Pools {
		if pool.Name == "pedl" {
			with = pool.Node.MilliCPU
			assert.Equal(t, "PEDL support check", pool.Pods[0].Name)
		}
	}
	s.PEDL = nil
	for _, pool := range s.Plan().Pools {
		if pool.Name == "pedl" {
			assert.Equal(t, pool.Node.MilliCPU-1000, with, "an agent a node")
		}
	}
}

// TestPEDLDefaults checks that a written amount keeps the defaults of the others, and that no default contradicts it.
func TestPEDLDefaults(t *testing.T) {
	s := testkit.Must(testkit.Load(t, withPEDL(pedlPool(nil)).And(edits{
		"persia:pedl.agent":          edits{"nodePools": []any{"pedl"}, "tolerations": []any{}},
		"persia:nodePools[3].labels": edits{"determined.ai/pedl-agent": "no"},
		"persia:pedl.resources":      edits{"limits": edits{"cpu": 2}},
		pg + ".resources":            edits{"requests": edits{"memory": "40Gi"}},
		pg + ".postgresqlExtendedConfig": edits{
			"maxConnections": 10, "sharedBuffers": "1GB", "logConnections": true},
	})))(t)
	p := s.PEDL
	assert.Equal(t, config.ImagePostgreSQL.Reference(), p.Postgres.Image.Registry+"/"+p.Postgres.Image.Repository+":"+p.Postgres.Image.Tag)
	amounts := func(r corev1.ResourceRequirements) string {
		return fmt.Sprint(r.Limits.Cpu(), r.Limits.Memory(), r.Requests.Cpu(), r.Requests.Memory())
	}
	assert.Equal(t, "2 16Gi 2 8Gi", amounts(p.Resources))
	assert.Equal(t, "8 40Gi 4 40Gi", amounts(p.Postgres.Resources))
	assert.Empty(t, p.Agent.Tolerations)
	assert.Equal(t, map[string]config.SettingValue{"maxConnections": "10", "sharedBuffers": "1GB", "logConnections": "true"}, p.Postgres.ExtendedConfig)
	assert.Equal(t, "system", p.NodePool)
	disk := p.Postgres.Persistence.PersistentDisk
	assert.Equal(t, "persia-pedl-postgresql", disk.Disk)
	assert.Equal(t, []string{"us-central1-a"}, disk.Zones)
	assert.Equal(t, "pd-balanced", disk.Create.Type)
	pool := s.NodePools[3]
	assert.Equal(t, map[string]string{"determined.ai/pedl-agent": "present"}, pool.Labels)
	assert.Equal(t, []config.Taint{{Key: "determined.ai/pedl-agent", Value: "present", Effect: corev1.TaintEffectNoSchedule}}, pool.Taints)
}

// TestInternalLoadBalancer checks that an internal load balancer needs no source ranges.
func TestInternalLoadBalancer(t *testing.T) {
	for annotation, accepts := range map[string]bool{"networking.gke.io/load-balancer-type": true, "cloud.google.com/load-balancer-type": true, "example.com/type": false} {
		_, err := testkit.Load(t, withPEDL(edits{"persia:pedl.service": edits{"type": "LoadBalancer", "annotations": edits{annotation: "Internal"}}}))
		assert.Equal(t, accepts, err == nil, "%s: %v", annotation, err)
	}
}

func TestPEDLWarned(t *testing.T) {
	testkit.Warned(t, []testkit.Refusal{
		{"not kept", withPEDL(edits{onDisk: edits{"enabled": false}}), onDisk + ".enabled", []string{"the database is lost when its pod is deleted"}},
		{"plain HTTP", withPEDL(edits{"persia:pedl.ingress": edits{"enabled": true}}), "persia:pedl.ingress.tls", []string{"over plain HTTP", "gce-internal"}},
		{"a certificate", withPEDL(edits{"persia:pedl.ingress": edits{"enabled": true, "tls": []any{edits{"secretName": "s"}}}}), "persia:pedl.ingress.tls", nil},
		{"Google's certificate", withPEDL(edits{"persia:pedl.ingress": edits{"enabled": true, "annotations": edits{"networking.gke.io/managed-certificates": "c"}}}), "persia:pedl.ingress.tls", nil},
		{"inside", withPEDL(edits{"persia:pedl.ingress": edits{"enabled": true, "annotations": edits{"kubernetes.io/ingress.class": "gce-internal"}}}), "persia:pedl.ingress.tls", nil},
		{"a class", withPEDL(edits{onDisk: edits{"storageClass": "fast"}}), onDisk + ".storageClass", []string{"the storage class fast determines"}},
		{"deleted", withPEDL(edits{onDisk: edits{"persistentDisk": edits{"disk": "d", "create": edits{"deleteWithStack": "d"}}}}), onDisk, []string{"`pulumi destroy` deletes projects/persia-project/zones/us-central1-a/disks/d"}},
	})
}
