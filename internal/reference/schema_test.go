package reference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// change replaces a text of a stack file with another one.
type change struct{ before, after string }

// edited returns the stack file of dev after a change.
func edited(t *testing.T, c change) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Pulumi.dev.yaml"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), c.before), "%q", c.before)
	return []byte(strings.Replace(string(text), c.before, c.after, 1))
}

// platform begins PEDL, up to the value of a secret.
const platform = "\nconfig:\n  persia:pedl: {registry: {password: "

// TestSchemaRefuses checks which mistakes an editor marks, and where.
func TestSchemaRefuses(t *testing.T) {
	schema := testkit.ReadSchema(t, root)
	const role = "      embeddingWorker:\n        replicas: 1\n"
	for name, c := range map[string]struct {
		change
		at, says string
	}{
		"unknown key":                   {change{"persia:storage:", "persia:volume:"}, "/config", "persia:volume"},
		"unknown key in the short form": {change{"persia:storage:", "volume:"}, "/config", "volume"},
		"missing key":                   {change{"  persia:nodePools:", "  gcp:nodePools:"}, "/config", "persia:nodePools"},
		"misspelt key of Pulumi":        {change{"\nconfig:\n", "\nencryptionSalt: v1\nconfig:\n"}, "''", "encryptionSalt"},
		"misspelt field":                {change{"nodes: 1", "node: 1"}, "/config/persia:nodePools/0", "'node'"},
		"misspelt field of a role":      {change{role, "      embeddingWorker:\n        replcas: 1\n"}, "/config/persia:jobs/0/embeddingWorker", "'replcas'"},
		"missing field":                 {change{"      machineType: g2-standard-32\n", ""}, "/config/persia:nodePools/0", "machineType"},
		"missing region":                {change{"    region: us-central1\n", ""}, "/config/persia:cluster", "region"},
		"job without a name":            {change{"- name: adult-income", "- runId: first"}, "/config/persia:jobs/0", "name"},
		"text for a number":             {change{"nodes: 1", `nodes: "1"`}, "/config/persia:nodePools/0/nodes", "string"},
		"fraction for a number":         {change{"nodes: 1", "nodes: 1.5"}, "/config/persia:nodePools/0/nodes", "integer"},
		"less than nothing":             {change{"nodes: 1", "nodes: -1"}, "/config/persia:nodePools/0/nodes", "minimum"},
		"zero for a default":            {change{"nodes: 1", "nodes: 1\n      maxPodsPerNode: 0"}, "/config/persia:nodePools/0/maxPodsPerNode", "minimum"},
		"number for a text":             {change{`value: "1"`, "value: 1"}, "/config/persia:jobs/0/nnWorker/env/1/value", "number"},
		"text for true or false":        {change{"deletionProtection: false", "deletionProtection: no way"}, "/config/persia:cluster/deletionProtection", "boolean"},
		"object for a list":             {change{"zones: [us-central1-a]", "zones: {a: b}"}, "/config/persia:cluster/zones", "array"},
		"text for an object":            {change{"gpu: {type: nvidia-l4, count: 1}", "gpu: nvidia-l4"}, "/config/persia:nodePools/0/gpu", "object"},
		"no value of an enumeration":    {change{"installer: managed", "installer: manual"}, "/config/persia:nvidiaDriver/installer", "'ubuntu-daemonset'"},
		"no value of a tag's list":      {change{"zones: [us-central1-a]", "releaseChannel: regular\n    zones: [us-central1-a]"}, "/config/persia:cluster/releaseChannel", "'REGULAR'"},
		"no value, in a list":           {change{"size: 10Gi", "size: 10Gi\n      accessModes: [RWX]"}, "/config/persia:storage/0/accessModes/0", "'ReadWriteMany'"},
		"no quantity":                   {change{"size: 10Gi", "size: 10 GB"}, "/config/persia:storage/0/size", "pattern"},
		"number for a quoted quantity":  {change{"size: 10Gi", "size: 10"}, "/config/persia:storage/0/size", "number"},
		"no quantity of a resource":     {change{"memory: 2Gi", "memory: 2GiB"}, "/config/persia:nats/resources/requests/memory", "pattern"},
		"misspelt field of Kubernetes":  {change{`value: "1"`, "valueForm: {}"}, "/config/persia:jobs/0/nnWorker/env/1", "'valueForm'"},
		"secret where none may be":      {change{"size: 10Gi", "size: {secure: v1:abc}"}, "/config/persia:storage/0/size", "object"},
		"secret with more":              {change{"\nconfig:\n", platform + "{secure: v1:abc, b: c}}, postgresql: {}}\n"}, "/config/persia:pedl/registry/password", "'b'"},
	} {
		t.Run(name, func(t *testing.T) {
			err := schema.Check(t, edited(t, c.change))
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.at)
			assert.Contains(t, err.Error(), c.says)
		})
	}
}

func TestSchemaAccepts(t *testing.T) {
	schema := testkit.ReadSchema(t, root)
	for name, c := range map[string]change{
		"nothing else":                   {},
		"short form of a key":            {"persia:storage:", "storage:"},
		"key of a provider":              {"\nconfig:\n", "\nconfig:\n  gcp:region: us-central1\n  kubernetes:renderYamlToDirectory: out\n  pulumi:disable-default-providers: [\"*\"]\n"},
		"what Pulumi writes":             {"\nconfig:\n", "\nencryptionsalt: v1:abc\nsecretsprovider: gcpkms://a\nencryptedkey: abc\nconfig:\n"},
		"environment that is defined":    {"\nconfig:\n", "\nenvironment: {imports: [a], values: {b: c}}\nconfig:\n"},
		"secret":                         {"\nconfig:\n", platform + "{secure: v1:abc}}, postgresql: {}}\n"},
		"text for a secret":              {"\nconfig:\n", platform + "a}, postgresql: {}}\n"},
		"number for a quantity":          {"cpu: 500m", "cpu: 1"},
		"quantity with a sign":           {"cpu: 500m", `cpu: "+1.5"`},
		"older name of a role":           {"      embeddingWorker:", "      middleware:"},
		"older name of a field":          {"      persiaEnv:\n", "      globalConfigPath: /a.yml\n      persiaEnv:\n"},
		"role that is left to the job":   {"        replicas: 1\n        nodePool: gpu\n        nprocPerNode", "        replicas: 1\n        nprocPerNode"},
		"volume of Kubernetes":           {"      persiaEnv:\n", "      volumes: [{name: a, persistentVolumeClaim: {claimName: b}}, {name: c, emptyDir: {sizeLimit: 1Gi}}]\n      persiaEnv:\n"},
		"label of any name":              {"nodes: 1", "nodes: 1\n      labels: {example.com/team: ranking}"},
		"description of a machine type":  {"persia:machineTypes: {}", "persia:machineTypes: {x5-metal: {cpus: 8, memory: 64Gi, hourlyPrice: 1.5}}"},
		"taint without a value":          {"nodes: 1", "nodes: 1\n      taints: [{key: a, effect: NoExecute}]"},
		"autoscaling from zero":          {"nodes: 1", "autoscaling: {minNodes: 0, maxNodes: 1}"},
		"soft delete that is turned off": {"hostPath: {path: /var/lib/persia}", "gcsFuse: {bucket: a, create: {softDeleteDays: 0}}"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.before == "" {
				c = change{"persia-dev", "persia-dev"}
			}
			assert.NoError(t, schema.Check(t, edited(t, c)))
		})
	}
}

func TestSchemaLeavesKeysToAnEnvironment(t *testing.T) {
	schema := testkit.ReadSchema(t, root)
	assert.NoError(t, schema.Check(t, []byte("environment: [persia/dev]\nconfig: {persia:storage: []}\n")))
	assert.Error(t, schema.Check(t, []byte("config: {persia:storage: []}\n")))
}
