package preflight

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServices(t *testing.T) {
	const key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
	cluster := func(more string) string {
		return stackOf("{name: c, region: us-central1, zones: [us-central1-a]" + more + "}")
	}
	volume := func(source string) string {
		return strings.Replace(created, "persia:storage: []", "persia:storage: [{name: v, size: 1Ti, "+source+"}]", 1)
	}
	standard := func(more ...string) []string {
		return append(without("artifactregistry.googleapis.com", "file.googleapis.com", "storage.googleapis.com", "cloudkms.googleapis.com"), more...)
	}
	cases := map[string]struct {
		stack string
		want  []string
	}{
		"defaults": {created, standard()},
		"all off": {cluster(", dns: KUBE_DNS, backup: {agent: false}, binaryAuthorization: false, securityPosture: DISABLED, imageStreaming: false"),
			[]string{"compute.googleapis.com", "container.googleapis.com", "iam.googleapis.com", "cloudresourcemanager.googleapis.com"}},
		"Filestore":         {volume("filestore: {instance: i, create: {}}"), standard("file.googleapis.com")},
		"a bucket":          {volume("gcsFuse: {bucket: my-bucket}"), standard("storage.googleapis.com")},
		"a key":             {cluster(", encryption: {secrets: " + key + "}"), standard("cloudkms.googleapis.com")},
		"a key of a volume": {volume("persistentDisk: {disk: d, create: {kmsKey: " + key + "}}"), standard("cloudkms.googleapis.com")},
		"a cache": {strings.Replace(created, "persia:storage: []", "persia:storage: []\n  persia:images: {caches: [{registry: docker.io}]}", 1),
			standard("artifactregistry.googleapis.com")},
		"a cache that exists": {strings.Replace(created, "persia:storage: []", "persia:storage: []\n  persia:images: {caches: [{registry: docker.io, repository: us-docker.pkg.dev/p/hub}]}", 1),
			standard()},
		"existing": {existing, nil},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.stack(test.stack)
			file, err := readStackFile(m.project, "dev")
			require.NoError(t, err)
			stack, err := file.load()
			require.NoError(t, err)
			assert.ElementsMatch(t, test.want, names(Services(stack)))
		})
	}
}
