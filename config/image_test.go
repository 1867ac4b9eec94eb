package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

var (
	imagePath = field.NewPath("persia:images")
	here      = &Site{Project: "my-project", Cluster: Cluster{Region: "us-central1", Name: "persia"}}
)

// imageRead decodes settings and resolves them.
func imageRead(t *testing.T, text string, site *Site) (Images, error) {
	t.Helper()
	var s Images
	p := &input.Problems{}
	input.Decode(p, imagePath, input.ParseJSON(text), &s)
	s.resolve(site)
	s.check(p, imagePath, site)
	return s, p.Err()
}

const (
	hub  = "us-central1-docker.pkg.dev/my-project/persia-docker-hub"
	quay = "us-docker.pkg.dev/shared/quay"
)

func TestReference(t *testing.T) {
	both, err := imageRead(t, `{"caches": [{"registry": "docker.io"}, {"registry": "quay.io", "repository": "`+quay+`"}]}`, here)
	require.NoError(t, err)
	digest := "@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
	for image, want := range map[string]string{
		"nats":                                hub + "/library/nats",
		"nats:2.12.12":                        hub + "/library/nats:2.12.12",
		"persiaml/persia-cpu-runtime:latest":  hub + "/persiaml/persia-cpu-runtime:latest",
		"docker.io/bitnami/postgresql:10.8.0": hub + "/bitnami/postgresql:10.8.0",
		"index.docker.io/library/busybox":     hub + "/library/busybox",
		"prom/pushgateway" + digest:           hub + "/prom/pushgateway" + digest,
		"quay.io/a/b/c:1":                     quay + "/a/b/c:1",
		"ghcr.io/a/b:1":                       "ghcr.io/a/b:1",
		"localhost:5000/a:1":                  "localhost:5000/a:1",
		"us-docker.pkg.dev/p/r/a:1":           "us-docker.pkg.dev/p/r/a:1",
		"":                                    "",
		"NOT AN IMAGE":                        "NOT AN IMAGE",
	} {
		assert.Equal(t, want, both.Reference(image), image)
		assert.Equal(t, image, both.PrivateReference(image), "a cache without credentials holds public images only")
		assert.Equal(t, image, Images{}.Reference(image), "without caches")
	}
	withCredentials, err := imageRead(t, `{"caches": [{"registry": "docker.io", "credentials": {"username": "ads", "passwordSecret": "projects/p/secrets/hub/versions/1"}}]}`, here)
	require.NoError(t, err)
	assert.Equal(t, hub+"/ads/nn-worker:1", withCredentials.PrivateReference("ads/nn-worker:1"))
}

func TestLooseImages(t *testing.T) {
	for image, loose := range map[string]bool{
		"nats": true, "nats:latest": true, "nats:2.12.12": false, "registry:5000/nats": true,
		"registry:5000/nats:2": false, "nats@sha256:" + strings.Repeat("0", 64): false,
	} {
		assert.Equal(t, loose, isLooseImage(image), image)
	}
}

func TestCacheNames(t *testing.T) {
	s, err := imageRead(t, `{"caches": [{"registry": "docker.io"}, {"registry": "quay.io", "repository": "`+quay+`"}]}`, here)
	require.NoError(t, err)
	created, existing := s.Caches[0], s.Caches[1]
	assert.Equal(t, []any{true, "us-central1", "my-project", "persia-docker-hub"},
		[]any{created.Created(), created.Location(), created.Project(), created.Name()})
	assert.Equal(t, []any{false, "us", "shared", "quay"},
		[]any{existing.Created(), existing.Location(), existing.Project(), existing.Name()})
}

func TestCheck(t *testing.T) {
	existing := &Site{Cluster: Cluster{Existing: &ExistingCluster{}}}
	for name, c := range map[string]struct {
		text string
		site *Site
		want string
	}{
		"none":                                {`{}`, here, ""},
		"one of its own":                      {`{"caches": [{"registry": "docker.io"}]}`, here, ""},
		"on an existing cluster":              {`{"caches": [{"registry": "docker.io", "repository": "` + hub + `"}]}`, existing, ""},
		"nothing to create on existing":       {`{"caches": [{"registry": "docker.io"}]}`, existing, "persia:images.caches[0].repository: Required value: write an existing remote repository"},
		"another registry of its own":         {`{"caches": [{"registry": "quay.io"}]}`, here, "--remote-docker-repo=https://quay.io --location=us-central1"},
		"twice":                               {`{"caches": [{"registry": "docker.io"}, {"registry": "docker.io"}]}`, here, "persia:images.caches[1].registry: Duplicate value"},
		"no registry":                         {`{"caches": [{}]}`, here, `persia:images.caches[0].registry: Required value`},
		"Docker Hub by another name":          {`{"caches": [{"registry": "index.docker.io"}]}`, here, "like docker.io"},
		"a registry with a scheme":            {`{"caches": [{"registry": "https://quay.io"}]}`, here, "without scheme and path"},
		"a repository by its name":            {`{"caches": [{"registry": "docker.io", "repository": "hub"}]}`, here, `"hub": must be an Artifact Registry repository`},
		"credentials of what exists":          {`{"caches": [{"registry": "quay.io", "repository": "` + quay + `", "credentials": {"username": "a", "passwordSecret": "projects/p/secrets/s/versions/1"}}]}`, here, "caches[0].credentials: an existing repository has its own credentials"},
		"a password instead of a secret":      {`{"caches": [{"registry": "docker.io", "credentials": {"username": "a", "passwordSecret": "hunter2"}}]}`, here, "must be the version of a secret"},
		"credentials without user and secret": {`{"caches": [{"registry": "docker.io", "credentials": {}}]}`, here, "credentials.username: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := imageRead(t, c.text, c.site)
			if c.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}
