package stackfile

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
		"misspelt key":        {"config:\n  persia:pdel: {}\n", "Pulumi.dev.yaml has keys that nothing reads:\npersia:pdel: unknown key; did you mean persia:pedl?"},
		"capital letters":     {"config:\n  persia:nodepools: []\n", "persia:nodepools: unknown key; did you mean persia:nodePools?"},
		"without a namespace": {"config:\n  nodepools: []\n", "persia:nodepools: unknown key; did you mean persia:nodePools?"},
		"like no other":       {"config:\n  persia:colour: red\n", "persia:colour: unknown key; remove it, as the keys are persia:cluster, persia:nodePools and persia:pedl"},
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
