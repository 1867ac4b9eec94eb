package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// imageForm matches an image in a command such as `docker run`.
var imageForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(/[a-z0-9._-]+)+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$`)

// allImagesOf returns the images of all registered objects: in fields, in commands, and composed by
// the NATS operator.
func allImagesOf(r *testkit.Recorder) map[string]bool {
	found := map[string]bool{}
	var visit func(name string, value any)
	visit = func(name string, value any) {
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
				visit(name, inner)
			}
		case []any:
			for _, inner := range value {
				visit(name, inner)
			}
		case string:
			isField := name == "image" || strings.HasSuffix(name, "Image")
			inCommand := (name == "command" || name == "args") && imageForm.MatchString(value)
			if isField || inCommand {
				found[value] = true
			}
		}
	}
	for _, registration := range r.Resources {
		visit("", registration.Inputs.Mappable())
	}
	return found
}

// textsOf is all that a user has written for a stack: the stack file, and the files that
// it names.
func textsOf(t *testing.T, directory string, configuration map[string]string) string {
	t.Helper()
	var texts []string
	for _, text := range configuration {
		texts = append(texts, text)
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.yml"))
	require.NoError(t, err)
	for _, file := range files {
		if text, err := os.ReadFile(file); assert.NoError(t, err) && strings.Contains(strings.Join(texts, "\n"), filepath.Base(file)) {
			texts = append(texts, string(text))
		}
	}
	return strings.Join(texts, "\n")
}

// TestImagesAreChosen: each image of each stack is in package images or in the stack
// file, and the package has no other.
func TestImagesAreChosen(t *testing.T) {
	type stack struct {
		path string
		edit func(configuration map[string]string)
	}
	stacks := map[string]stack{
		"prod with the installer of Container-Optimized OS": {"Pulumi.prod.yaml", func(c map[string]string) { c["persia:nvidiaDriver"] = `{"installer": "cos-daemonset"}` }},
		"dev with JobSets": {"Pulumi.dev.yaml", func(c map[string]string) {
			programtest.Edit(t, c, "persia:jobs", func(jobs any) { jobs.([]any)[0].(map[string]any)["engine"] = "jobset" })
		}},
		"queues with queued provisioning": {"examples/Pulumi.queues.yaml", func(c map[string]string) {
			programtest.Edit(t, c, "persia:nodePools", func(pools any) {
				pool := pools.([]any)[0].(map[string]any)
				delete(pool, "nodes")
				pool["autoscaling"], pool["queuedProvisioning"] = map[string]any{"minNodes": 0, "maxNodes": 2}, true
			})
			programtest.Edit(t, c, "persia:jobs", func(jobs any) {
				for _, job := range jobs.([]any) {
					job.(map[string]any)["dataloader"].(map[string]any)["nodePool"] = "embeddings"
				}
			})
		}},
		"dev with metrics of NATS": {"Pulumi.dev.yaml", func(c map[string]string) {
			programtest.Edit(t, c, "persia:nats", func(nats any) { nats.(map[string]any)["metrics"] = true })
		}},
		"pedl with a check of its nodes": {"examples/Pulumi.pedl.yaml", func(c map[string]string) {
			programtest.Edit(t, c, "persia:pedl", func(pedl any) {
				agent := programtest.Field(pedl, "agent")
				pedl.(map[string]any)["supportCheck"] = map[string]any{"nodePool": agent["nodePools"].([]any)[0]}
			})
		}},
	}
	for _, path := range programtest.StackFiles(t) {
		stacks[path] = stack{path, func(map[string]string) {}}
	}
	used := map[string]bool{}
	for name, s := range stacks {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStackFile(t, s.path)
			s.edit(configuration)
			directory := filepath.Join(root, filepath.Dir(s.path))
			r, err := programtest.DeployIn(t, directory, configuration)
			require.NoError(t, err)
			byUser := textsOf(t, directory, configuration)
			found := allImagesOf(r)
			assert.NotEmpty(t, found)
			for image := range found {
				image = strings.TrimPrefix(strings.TrimPrefix(image, programtest.ProdCache), "library/")
				if i := slices.IndexFunc(config.AllImages(), func(c config.Image) bool { return isOf(image, c, byUser) }); i >= 0 {
					used[config.AllImages()[i].Repository] = true
					continue
				}
				assert.Contains(t, byUser, image, "is neither in package images nor in the stack file")
			}
		})
	}
	for _, image := range config.AllImages() {
		assert.True(t, used[image.Repository], "no stack has the image %s", image.Repository)
	}
}

// isOf reports whether an image is one of package images, perhaps with the tag that a user
// has written for it.
func isOf(image string, chosen config.Image, byUser string) bool {
	if image == chosen.Reference() {
		return true
	}
	tag, ok := strings.CutPrefix(image, chosen.Repository+":")
	return ok && chosen.ByTag == config.ImageChosenByFile && strings.Contains(byUser, tag)
}

// TestChosenImagesAreDocumented: docs/reference/security.md lists the images of the package, and an image
// has either a digest or a reason not to have one.
func TestChosenImagesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "security.md"))
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "| pinned by | images |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var pins []string
	byPin := map[string][]string{}
	for _, image := range config.AllImages() {
		assert.NotEqual(t, image.Digest == "", image.ByTag == "", "%s has a digest or a reason, and not both", image.Repository)
		pin := "digest"
		if image.Digest == "" {
			pin = "tag: " + image.ByTag
		} else {
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
