package input

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckKeys(t *testing.T) {
	known := []string{"persia:cluster", "persia:nodePools", "persia:pedl", "persia:project"}
	for name, test := range map[string]struct{ text, want string }{
		"known keys":          {"config:\n  persia:cluster: {}\n  nodePools: []\n", ""},
		"keys of Pulumi":      {"config:\n  pulumi:tags: {}\n", ""},
		"account to act as":   {"config:\n  gcp:impersonateServiceAccount: a@b\n", "gcp:impersonateServiceAccount: is in the namespace gcp, which nothing reads; run `gcloud auth application-default login --impersonate-service-account=ACCOUNT`"},
		"project of Google":   {"config:\n  gcp:project: p\n", "gcp:project: is in the namespace gcp, which nothing reads; write persia:project"},
		"key of a provider":   {"config:\n  gcp:userProjectOverride: true\n", "gcp:userProjectOverride: is in the namespace gcp, which nothing reads; remove it"},
		"context of a file":   {"config:\n  kubernetes:context: c\n", "write existing.context of persia:cluster"},
		"misspelt key":        {"config:\n  persia:pdel: {}\n", "1 problem\npersia:pdel: unknown key; did you mean persia:pedl?"},
		"capital letters":     {"config:\n  persia:nodepools: []\n", "persia:nodepools: unknown key; did you mean persia:nodePools?"},
		"without a namespace": {"config:\n  nodepools: []\n", "persia:nodepools: unknown key; did you mean persia:nodePools?"},
		"like no other":       {"config:\n  persia:colour: red\n", "persia:colour: unknown key; remove it, as the keys are persia:cluster, persia:nodePools, persia:pedl and persia:project"},
		"outside of config":   {"config: {}\npersia:pedl: {}\n", "persia:pedl: is outside of config, where Pulumi ignores it; indent it below config"},
		"outside, bare":       {"config: {}\npedl: {}\n", "pedl: is outside of config"},
		"settings of Pulumi":  {"secretsprovider: passphrase\nencryptionsalt: v1\nenvironment: [a]\nconfig: {}\n", ""},
		"namespace, capital":  {"config:\n  Persia:pedl: {}\n", "Persia:pedl: is in the namespace Persia, which nothing reads; write persia:pedl"},
		"namespace misspelt":  {"config:\n  presia:pedl: {}\n", "presia:pedl: is in the namespace presia"},
		"namespace of others": {"config:\n  kubernetes:pedl: {}\n", "kubernetes:pedl: is in the namespace kubernetes, which nothing reads; write persia:pedl"},
		"no YAML":             {"config: [", "did not find"},
		"key twice":           {"config:\n  persia:pedl: {}\n  persia:pedl: {a: 1}\n", "1 problem\npersia:pedl: is in line 2 and in line 3, and only one of them counts; remove one"},
		"key by two names":    {"config:\n  persia:pedl: {}\n  pedl: {}\n", "persia:pedl: is there twice, with and without its namespace; remove one"},
		"field twice":         {"config:\n  persia:nodePools:\n    - {name: a, nodes: 1, name: b}\n", "1 problem\npersia:nodePools[0].name: is in line 3 and in line 3"},
		"config twice":        {"config: {}\nconfig: {persia:pedl: {}}\n", "1 problem\nconfig: is in line 1 and in line 2"},
		"second document":     {"config: {}\n---\nconfig: {}\n", "1 problem\n---: begins a second document, which Pulumi ignores, in line 3; remove the line ---"},
		"markers alone":       {"---\nconfig: {}\n---\n# nothing\n", ""},
		"octal number":        {"config:\n  persia:nodePools: [{nodes: 010}]\n", `1 problem` + "\n" + `persia:nodePools[0].nodes: Invalid value: "010": is octal, which makes it 8; write 8 or 10`},
		"as people read":      {"config:\n  persia:cluster: {defaultMode: 0440, a: 07, b: 0x10, c: '010', d: 08}\n", ""},
		"alias of itself":     {"config:\n  persia:nodePools: &a [1]\n  persia:pedl: *a\n", ""},
		"nothing":             {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := ParseStackFile([]byte(test.text), "persia")
			if err == nil {
				err = file.CheckKeys("persia", known)
			}
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
		})
	}
}
