package reference

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// change replaces a text of a stack file with another one.
type change struct{ before, after string }

// edited returns the stack file of dev after a change.
func edited(t *testing.T, c change) []byte {
	t.Helper()
	text := testkit.Read(t, filepath.Join(root, "Pulumi.dev.yaml"))
	require.Equal(t, 1, strings.Count(text, c.before), "%q", c.before)
	return []byte(strings.Replace(text, c.before, c.after, 1))
}

// platform begins PEDL, up to the value of a secret.
const platform = "\nconfig:\n  persia:pedl: {registry: {password: "

// TestSchema checks which mistakes an editor marks, and where.
func TestSchema(t *testing.T) {
	for name, c := range map[string]struct {
		change
		at, says string
	}{
		"unknown key":                   {change{"persia:storage:", "persia:volume:"}, "/config", "persia:volume"},
		"unknown key in the short form": {change{"persia:storage:", "volume:"}, "/config", "volume"},
		"misspelt key of Pulumi":        {change{"\nconfig:\n", "\nencryptionSalt: v1\nconfig:\n"}, "''", "encryptionSalt"},
		"misspelt field":                {change{"nodes: 1", "node: 1"}, "/config/persia:nodePools/0", "'node'"},
		"missing field":                 {change{"      machineType: g2-standard-32\n", ""}, "/config/persia:nodePools/0", "machineType"},
		"text for a number":             {change{"nodes: 1", `nodes: "1"`}, "/config/persia:nodePools/0/nodes", "string"},
		"less than nothing":             {change{"nodes: 1", "nodes: -1"}, "/config/persia:nodePools/0/nodes", "minimum"},
		"zero for a default":            {change{"nodes: 1", "nodes: 1\n      maxPodsPerNode: 0"}, "/config/persia:nodePools/0/maxPodsPerNode", "minimum"},
		"object for a list":             {change{"zones: [us-central1-a]", "zones: {a: b}"}, "/config/persia:cluster/zones", "array"},
		"no value of an enumeration":    {change{"installer: managed", "installer: manual"}, "/config/persia:nvidiaDriver/installer", "'ubuntu-daemonset'"},
		"no value, in a list":           {change{"size: 10Gi", "size: 10Gi\n      accessModes: [RWX]"}, "/config/persia:storage/0/accessModes/0", "'ReadWriteMany'"},
		"no quantity of a resource":     {change{"memory: 2Gi", "memory: 2GiB"}, "/config/persia:nats/resources/requests/memory", "pattern"},
		"misspelt field of Kubernetes":  {change{`value: "1"`, "valueForm: {}"}, "/config/persia:jobs/0/nnWorker/env/1", "'valueForm'"},
		"secret where none may be":      {change{"size: 10Gi", "size: {secure: v1:abc}"}, "/config/persia:storage/0/size", "object"},

		"short form of a key":   {change{"persia:storage:", "storage:"}, "", ""},
		"key of a provider":     {change{"\nconfig:\n", "\nconfig:\n  gcp:region: us-central1\n"}, "/config", "'persia:cluster'"},
		"key of Pulumi":         {change{"\nconfig:\n", "\nconfig:\n  pulumi:tags: {}\n"}, "", ""},
		"what Pulumi writes":    {change{"\nconfig:\n", "\nencryptionsalt: v1:abc\nsecretsprovider: gcpkms://a\nencryptedkey: abc\nenvironment: [a]\nconfig:\n"}, "", ""},
		"secret":                {change{"\nconfig:\n", platform + "{secure: v1:abc}}, postgresql: {}}\n"}, "", ""},
		"text for a secret":     {change{"\nconfig:\n", platform + "a}, postgresql: {}}\n"}, "", ""},
		"number for a quantity": {change{"cpu: 500m", "cpu: 1"}, "", ""},
		"older name of a role":  {change{"      embeddingWorker:", "      middlewareServer:"}, "", ""},
		"older name of a field": {change{"      persiaEnv:\n", "      globalConfigPath: /a.yml\n      persiaEnv:\n"}, "", ""},
		"label of any name":     {change{"nodes: 1", "nodes: 1\n      labels: {example.com/team: ranking}"}, "", ""},
		"a job from a manifest": {change{"- name: adult-income", "- manifest: job.yml"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := testkit.CheckSchema(t, edited(t, c.change))
			testkit.Fails(t, err, c.at)
			testkit.Fails(t, err, c.says)
		})
	}
}
