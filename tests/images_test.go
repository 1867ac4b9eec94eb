package tests

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

const (
	// programtest.ProdCache is where the stack prod pulls images of Docker Hub from.
	hubCache = "us-central1-docker.pkg.dev/my-project/hub"
)

// deployWithCaches runs the program over a stack file with a list of caches in it.
func deployWithCaches(t *testing.T, path, caches string) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStackFile(t, path)
	configuration["persia:images"] = `{"caches": ` + caches + `}`
	recorder, err := programtest.DeployIn(t, filepath.Join(root, filepath.Dir(path)), configuration)
	require.NoError(t, err)
	return recorder
}

// imagesIn finds the images in a value and below it, by their paths.
func imagesIn(path string, value any) map[string]string {
	found := map[string]string{}
	add := func(path string, value any) {
		for path, image := range imagesIn(path, value) {
			found[path] = image
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if text, ok := inner.(string); ok && (name == "image" || strings.HasSuffix(name, "Image")) {
				found[path+"."+name] = text
			}
			add(path+"."+name, inner)
		}
	case []any:
		for _, inner := range value {
			add(path+"[]", inner)
		}
	}
	return found
}

// imagesOf returns the images of all registered objects.
func imagesOf(r *testkit.Recorder) map[string]string {
	found := map[string]string{}
	for _, registration := range r.Resources {
		for path, image := range imagesIn(registration.URN, registration.Inputs.Mappable()) {
			found[path] = image
		}
	}
	return found
}

// TestEveryImageComesThroughTheCache: with a cache of Docker Hub that has credentials,
// no pod of any stack pulls from Docker Hub.
func TestEveryImageComesThroughTheCache(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			cache := `[{"registry": "docker.io", "credentials": {"username": "ads", "passwordSecret": "projects/p/secrets/hub/versions/1"}}]`
			if strings.Contains(path, "existing") {
				cache = `[{"registry": "docker.io", "repository": "` + hubCache + `"}]`
			}
			cached := 0
			for at, image := range imagesOf(deployWithCaches(t, path, cache)) {
				named, err := reference.ParseNormalizedNamed(image)
				if strings.Contains(at, "nvidia-driver") {
					continue // on the disk of the node, or Google's
				}
				if assert.NoError(t, err, "%s: %s", at, image) {
					assert.NotEqual(t, config.DockerHub, reference.Domain(named), "%s: %s", at, image)
					cached++
				}
			}
			assert.NotZero(t, cached, "no image was found")
		})
	}
}

// TestPrivateImagesNeedCredentials: a cache without credentials does not get what pods
// pull with pull secrets, and they pull it themselves.
func TestPrivateImagesNeedCredentials(t *testing.T) {
	withPEDL := deployWithCaches(t, "examples/Pulumi.pedl.yaml", `[{"registry": "docker.io"}]`)
	assert.Equal(t, "determinedai/pedl-master:0.9.0", imageOf(t, withPEDL, "Deployment::pedl-master"))
	assert.Equal(t, "determinedai/pedl-agent:0.9.0", imageOf(t, withPEDL, "DaemonSet::pedl-agent"))

	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		jobs.([]any)[0].(map[string]any)["imagePullSecrets"] = []any{map[string]any{"name": "hub"}}
	})
	withSecret, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	assert.Equal(t, "persiaml/persia-cuda-runtime:latest", imageOf(t, withSecret, "StatefulSet::criteo-nn-worker"))
}

// imageOf is the image of the only container of a workload.
func imageOf(t *testing.T, r *testkit.Recorder, name string) string {
	t.Helper()
	for at, image := range imagesOf(r) {
		if strings.Contains(at, ":"+name+".") {
			return image
		}
	}
	require.Fail(t, "no image of "+name)
	return ""
}

// TestCaches: the stack creates the cache of Docker Hub that is not named, and lets its
// nodes read each cache before there is a node.
func TestCaches(t *testing.T) {
	const path = "Pulumi.prod.yaml"
	created := deployWithCaches(t, path, `[{"registry": "docker.io", "credentials": {"username": "ads", "passwordSecret": "projects/p/secrets/hub/versions/1"}}]`)
	repository := created.One(t, testkit.Repository, "persia-prod-docker.io")
	text, err := json.Marshal(testkit.At(t, repository, "remoteRepositoryConfig"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"dockerRepository": {"publicRepository": "DOCKER_HUB"},
		"upstreamCredentials": {"usernamePasswordCredentials": {"username": "ads", "passwordSecretVersion": "projects/p/secrets/hub/versions/1"}}}`, string(text))
	assert.Equal(t, "persia-prod-docker-hub", testkit.At(t, repository, "repositoryId"))

	for name, recorder := range map[string]*testkit.Recorder{
		"created":  created,
		"existing": deployWithCaches(t, path, `[{"registry": "docker.io", "repository": "us-docker.pkg.dev/shared/hub"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			reader := recorder.One(t, testkit.RepositoryReader, "persia-prod-docker.io-nodes")
			assert.Equal(t, "roles/artifactregistry.reader", testkit.At(t, reader, "role"))
			for _, pool := range recorder.Some(testkit.NodePool) {
				assert.True(t, recorder.Before(pool)[reader.URN], "%s is made before its nodes may pull", pool.URN)
			}
			if name == "existing" {
				assert.Empty(t, recorder.Some(testkit.Repository), "a repository that exists is not created")
				assert.Equal(t, []any{"shared", "us", "projects/shared/locations/us/repositories/hub"},
					[]any{testkit.At(t, reader, "project"), testkit.At(t, reader, "location"), testkit.At(t, reader, "repository")})
			}
		})
	}
}
