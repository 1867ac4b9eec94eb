package tests

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// imageForm matches an image in a command such as `docker run`.
var imageForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(/[a-z0-9._-]+)+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$`)

// imagesOf returns the images in the fields and commands of all objects, and those that the NATS operator composes.
func imagesOf(r *testkit.Recorder) map[string]string {
	found := map[string]string{}
	var visit func(urn, name string, value any)
	visit = func(urn, name string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, inner := range value {
				tag, ok := value[name+"Tag"].(string)
				if name == "serverImage" {
					tag, ok = value["version"].(string)
				}
				if ok {
					inner = inner.(string) + ":" + tag
				}
				visit(urn, name, inner)
			}
		case []any:
			for _, inner := range value {
				visit(urn, name, inner)
			}
		case string:
			isField := name == "image" || strings.HasSuffix(name, "Image")
			if isField || (name == "command" || name == "args") && imageForm.MatchString(value) {
				found[value] = urn
			}
		}
	}
	for _, registration := range r.Resources {
		visit(registration.URN, "", registration.Inputs.Mappable())
	}
	return found
}

// TestImagesAreListed: docs/reference/security.md, the stack file, or the manifest beside it names each image.
func TestImagesAreListed(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			texts := readText(t, "docs/reference/security.md") + readText(t, path)
			for _, manifest := range testkit.Must(filepath.Glob(filepath.Join(root, filepath.Dir(path), "*.yml")))(t) {
				texts += testkit.Read(t, manifest)
			}
			for image, urn := range imagesOf(programtest.DeployFile(t, path)) {
				named, err := reference.ParseNormalizedNamed(strings.TrimPrefix(strings.TrimPrefix(image, programtest.ProdCache), "library/"))
				require.NoError(t, err, "%s: %s", urn, image)
				name := reference.FamiliarName(named)
				if tagged, ok := named.(reference.Tagged); ok {
					name += ":" + tagged.Tag()
				}
				assert.Regexp(t, `["`+"`"+` /]`+regexp.QuoteMeta(name)+"[\"`@\n]", texts, urn)
			}
		})
	}
}

// deployWithCaches runs the program over a stack file with a list of caches in it.
func deployWithCaches(t *testing.T, path, caches string) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStack(t, path)
	configuration["persia:images"] = `{"caches": ` + caches + `}`
	info := pulumi.RunInfo{Config: configuration, RootDirectory: filepath.Join(root, filepath.Dir(path))}
	return testkit.Must(programtest.Run(t, info, nil))(t)
}

const (
	withCredentials = `[{"registry": "docker.io", "credentials": {"username": "ads", "passwordSecret": "projects/p/secrets/hub/versions/1"}}]`
	existing        = `[{"registry": "docker.io", "repository": "us-docker.pkg.dev/shared/hub"}]`
)

// TestEveryImageComesThroughTheCache: with a cache that has credentials, no pod pulls from Docker Hub.
func TestEveryImageComesThroughTheCache(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			cache := withCredentials
			if strings.Contains(path, "existing") {
				cache = existing
			}
			for image, urn := range imagesOf(deployWithCaches(t, path, cache)) {
				if strings.Contains(urn, "nvidia-driver") {
					continue // on the disk of the node, or Google's
				}
				named, err := reference.ParseNormalizedNamed(image)
				require.NoError(t, err, "%s: %s", urn, image)
				assert.NotEqual(t, config.DockerHub, reference.Domain(named), "%s: %s", urn, image)
			}
		})
	}
}

// TestPrivateImagesNeedCredentials: pods pull with their own secrets what a cache without credentials cannot.
func TestPrivateImagesNeedCredentials(t *testing.T) {
	pedl := imagesOf(deployWithCaches(t, "examples/Pulumi.pedl.yaml", `[{"registry": "docker.io"}]`))
	assert.Contains(t, pedl, "determinedai/pedl-master:0.9.0")
	assert.Contains(t, pedl, "determinedai/pedl-agent:0.9.0")
	configuration := programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{"persia:jobs[0].imagePullSecrets": []any{testkit.Edits{"name": "hub"}}})
	assert.Contains(t, imagesOf(programtest.MustDeploy(t, configuration)), "persiaml/persia-cuda-runtime:latest")
}

// TestCaches: a cache that the stack creates has its credentials, and nodes may read one that exists.
func TestCaches(t *testing.T) {
	created := deployWithCaches(t, "Pulumi.prod.yaml", withCredentials)
	assert.Equal(t, map[string]any{"username": "ads", "passwordSecretVersion": "projects/p/secrets/hub/versions/1"},
		testkit.At(t, created.One(t, testkit.Repository, "persia-prod-docker.io"), "remoteRepositoryConfig.upstreamCredentials.usernamePasswordCredentials"))

	found := deployWithCaches(t, "Pulumi.prod.yaml", existing)
	assert.Empty(t, found.Some(testkit.Repository), "a repository that exists is not created")
	reader := found.One(t, testkit.RepositoryReader, "persia-prod-docker.io-nodes")
	assert.Equal(t, []any{"shared", "us", "projects/shared/locations/us/repositories/hub"},
		[]any{testkit.At(t, reader, "project"), testkit.At(t, reader, "location"), testkit.At(t, reader, "repository")})
}
