package input

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestCheckKeys(t *testing.T) {
	known := []string{"persia:cluster", "persia:nodePools", "persia:pedl"}
	for name, test := range map[string]struct{ text, want string }{
		"known keys":          {"config:\n  persia:cluster: {}\n  nodePools: []\n", ""},
		"keys of a provider":  {"config:\n  gcp:region: us-central1\n  pulumi:tags: {}\n", ""},
		"misspelt key":        {"config:\n  persia:pdel: {}\n", "1 problem\npersia:pdel: unknown key; did you mean persia:pedl?"},
		"capital letters":     {"config:\n  persia:nodepools: []\n", "persia:nodepools: unknown key; did you mean persia:nodePools?"},
		"without a namespace": {"config:\n  nodepools: []\n", "persia:nodepools: unknown key; did you mean persia:nodePools?"},
		"like no other":       {"config:\n  persia:colour: red\n", "persia:colour: unknown key; remove it, as the keys are persia:cluster, persia:nodePools and persia:pedl"},
		"outside of config":   {"config: {}\npersia:pedl: {}\n", "persia:pedl: is outside of config, where Pulumi ignores it; indent it below config"},
		"outside, bare":       {"config: {}\npedl: {}\n", "pedl: is outside of config"},
		"settings of Pulumi":  {"secretsprovider: passphrase\nencryptionsalt: v1\nenvironment: [a]\nconfig: {}\n", ""},
		"config in capitals":  {"Config: {}\n", "Config: is ignored by Pulumi; write config in lower case"},
		"key twice":           {"config:\n  persia:pedl: {}\n  persia:pedl: {a: 1}\n", "persia:pedl: Duplicate value: \"persia:pedl\": is already in line 2, and only one of them counts; remove one"},
		"key by two names":    {"config:\n  persia:pedl: {}\n  pedl: {}\n", "persia:pedl: Duplicate value: \"pedl\": is already in line 2"},
		"field twice":         {"config:\n  persia:nodePools:\n    - {name: a, nodes: 1, name: b}\n", "persia:nodePools[0].name: Duplicate value: \"name\": is already in line 3"},
		"config twice":        {"config: {}\nconfig: {persia:pedl: {}}\n", "config: Duplicate value: \"config\": is already in line 1"},
		"second document":     {"config: {}\n---\nconfig: {}\n", "Pulumi.dev.yaml: has a second document in line 3, which Pulumi ignores; remove the line with --- before it"},
		"markers alone":       {"---\nconfig: {}\n---\n# nothing\n", ""},
		"namespace, capital":  {"config:\n  Persia:pedl: {}\n", "Persia:pedl: is in the namespace Persia, which nothing reads; write persia:pedl"},
		"namespace misspelt":  {"config:\n  presia:pedl: {}\n", "presia:pedl: is in the namespace presia"},
		"namespace of others": {"config:\n  gcp:project: p\n  kubernetes:pedl: {}\n", ""},
		"alias of itself":     {"config:\n  persia:nodePools: &a [*a]\n", ""},
		"no YAML":             {"config: [", ""},
		"nothing":             {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"Pulumi.dev.yaml": {Data: []byte(test.text)}}
			err := CheckKeys(files, "persia", "dev", known)
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
			assert.NoError(t, CheckKeys(files, "persia", "prod", known), "there is no such file")
		})
	}
}
