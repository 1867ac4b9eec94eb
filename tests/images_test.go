package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// imageForm matches an image in a command such as `docker run`.
var imageForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(/[a-z0-9._-]+)+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$`)

// imagesOf returns the images of all registered objects and where they are: in fields, in commands, and
// composed by the NATS operator.
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

// textsOf returns what a user has written for a stack: the stack file, and the manifests beside it.
func textsOf(t *testing.T, path string) string {
	t.Helper()
	text := readText(t, path)
	files, err := filepath.Glob(filepath.Join(root, filepath.Dir(path), "*.yml"))
	require.NoError(t, err)
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		require.NoError(t, err)
		text += string(manifest)
	}
	return text
}

// TestImagesAreChosen: each image of each stack is in package config or in the stack file.
func TestImagesAreChosen(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			byUser, found := textsOf(t, path), imagesOf(programtest.DeployFile(t, path))
			assert.NotEmpty(t, found)
			for image, urn := range found {
				image = strings.TrimPrefix(strings.TrimPrefix(image, programtest.ProdCache), "library/")
				if !slices.ContainsFunc(config.AllImages(), func(chosen config.Image) bool {
					tag, same := strings.CutPrefix(image, chosen.Repository+":")
					return image == chosen.Reference() || same && chosen.ByTag == config.ImageChosenByFile && strings.Contains(byUser, tag)
				}) {
					assert.Contains(t, byUser, image, "%s: is neither in package config nor in the stack file", urn)
				}
			}
		})
	}
}

// TestChosenImagesAreDocumented: docs/reference/security.md lists the images of the package, and an image
// has either a digest or a reason not to have one.
func TestChosenImagesAreDocumented(t *testing.T) {
	_, table, _ := strings.Cut(readText(t, "docs/reference/security.md"), "| pinned by | images |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var pins []string
	byPin := map[string][]string{}
	for _, image := range config.AllImages() {
		assert.NotEqual(t, image.Digest == "", image.ByTag == "", "%s has a digest or a reason, and not both", image.Repository)
		pin := "tag: " + image.ByTag
		if image.Digest != "" {
			pin = "digest"
			assert.Regexp(t, `^sha256:[0-9a-f]{64}$`, image.Digest)
		}
		if byPin[pin] == nil {
			pins = append(pins, pin)
		}
		name, _, _ := strings.Cut(image.Reference(), "@")
		byPin[pin] = append(byPin[pin], "`"+name+"`")
	}
	var rows []string
	for _, pin := range pins {
		rows = append(rows, "| "+pin+" | "+strings.Join(byPin[pin], ", ")+" |")
	}
	assert.Equal(t, strings.Join(rows, "\n"), strings.TrimSpace(table))
}

// deployWithCaches runs the program over a stack file with a list of caches in it.
func deployWithCaches(t *testing.T, path, caches string) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStackFile(t, path)
	configuration["persia:images"] = `{"caches": ` + caches + `}`
	recorder, err := programtest.DeployIn(t, filepath.Join(root, filepath.Dir(path)), configuration)
	require.NoError(t, err)
	return recorder
}

// TestEveryImageComesThroughTheCache: with a cache of Docker Hub that has credentials, no pod of any
// stack pulls from Docker Hub.
func TestEveryImageComesThroughTheCache(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			cache := `[{"registry": "docker.io", "credentials": {"username": "ads", "passwordSecret": "projects/p/secrets/hub/versions/1"}}]`
			if strings.Contains(path, "existing") {
				cache = `[{"registry": "docker.io", "repository": "us-central1-docker.pkg.dev/my-project/hub"}]`
			}
			for image, urn := range imagesOf(deployWithCaches(t, path, cache)) {
				if strings.Contains(urn, "nvidia-driver") {
					continue // on the disk of the node, or Google's
				}
				named, err := reference.ParseNormalizedNamed(image)
				if assert.NoError(t, err, "%s: %s", urn, image) {
					assert.NotEqual(t, config.DockerHub, reference.Domain(named), "%s: %s", urn, image)
				}
			}
		})
	}
}

// TestPrivateImagesNeedCredentials: a cache without credentials does not get what pods pull with pull
// secrets, and they pull it themselves.
func TestPrivateImagesNeedCredentials(t *testing.T) {
	pedl := imagesOf(deployWithCaches(t, "examples/Pulumi.pedl.yaml", `[{"registry": "docker.io"}]`))
	assert.Contains(t, pedl, "determinedai/pedl-master:0.9.0")
	assert.Contains(t, pedl, "determinedai/pedl-agent:0.9.0")
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		jobs.([]any)[0].(map[string]any)["imagePullSecrets"] = []any{map[string]any{"name": "hub"}}
	})
	assert.Contains(t, imagesOf(programtest.MustDeploy(t, configuration, nil)), "persiaml/persia-cuda-runtime:latest")
}

// TestCaches: the stack creates the cache of Docker Hub unless the cache is named, and lets its nodes read
// it.
func TestCaches(t *testing.T) {
	created := deployWithCaches(t, "Pulumi.prod.yaml", `[{"registry": "docker.io", "credentials": {"username": "ads", "passwordSecret": "projects/p/secrets/hub/versions/1"}}]`)
	repository := created.One(t, testkit.Repository, "persia-prod-docker.io")
	assert.Equal(t, "DOCKER_HUB", testkit.At(t, repository, "remoteRepositoryConfig.dockerRepository.publicRepository"))
	assert.Equal(t, map[string]any{"username": "ads", "passwordSecretVersion": "projects/p/secrets/hub/versions/1"},
		testkit.At(t, repository, "remoteRepositoryConfig.upstreamCredentials.usernamePasswordCredentials"))
	assert.Equal(t, "persia-prod-docker-hub", testkit.At(t, repository, "repositoryId"))

	existing := deployWithCaches(t, "Pulumi.prod.yaml", `[{"registry": "docker.io", "repository": "us-docker.pkg.dev/shared/hub"}]`)
	assert.Empty(t, existing.Some(testkit.Repository), "a repository that exists is not created")
	reader := existing.One(t, testkit.RepositoryReader, "persia-prod-docker.io-nodes")
	assert.Equal(t, []any{"shared", "us", "projects/shared/locations/us/repositories/hub"},
		[]any{testkit.At(t, reader, "project"), testkit.At(t, reader, "location"), testkit.At(t, reader, "repository")})
}
