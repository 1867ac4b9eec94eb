package config_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/testkit"
)

// indented is a block of code in Markdown that is a stack file.
var indented = regexp.MustCompile(`(?m)^    config:\n(?:    .*\n)+`)

// TestReadme: the stack file in README.md builds a whole cluster, without a warning, and its nodes
// cost what the page says.
func TestReadme(t *testing.T) {
	readme := testkit.Read(t, "../README.md")
	blocks := indented.FindAllString(readme, -1)
	require.Len(t, blocks, 1)
	stack := testkit.Must(config.Load(testkit.Parse(t, regexp.MustCompile(`(?m)^    `).ReplaceAllString(blocks[0], "")).Get, nil))(t)
	assert.Empty(t, stack.Warnings())
	assert.Nil(t, stack.Cluster.Existing, "README.md says that the file builds a cluster")
	assert.LessOrEqual(t, strings.Count(blocks[0], "\n"), 22)
	plan := stack.Plan()
	assert.Positive(t, plan.Pods)
	assert.Contains(t, oneLine(readme), "It costs "+plan.Cost(nil))
	assert.LessOrEqual(t, strings.Count(readme, "\n"), 90, "lines of README.md")
}

// TestReadmeCosts: dev and prod cost what README.md says, and do not warn about themselves.
func TestReadmeCosts(t *testing.T) {
	readme := oneLine(testkit.Read(t, "../README.md"))
	for _, name := range []string{"dev", "prod"} {
		stack, err := config.Load(testkit.Parse(t, testkit.Read(t, "../Pulumi."+name+".yaml")).Get, nil)
		require.NoError(t, err, name)
		assert.Empty(t, stack.Warnings(), name)
		assert.Contains(t, readme, "`"+name+"` costs "+stack.Plan().Cost(nil))
	}
}

// TestTutorialCost: the example shop costs what docs/start/your-own-model.md says, and the page's stack
// file for Google Cloud is whole, without a warning, and costs what the page says.
func TestTutorialCost(t *testing.T) {
	page := testkit.Read(t, "../docs/start/your-own-model.md")
	blocks := indented.FindAllString(page, -1)
	require.Len(t, blocks, 1)
	whole := strings.ReplaceAll(regexp.MustCompile(`(?m)^    `).ReplaceAllString(blocks[0], ""), "DIGEST", strings.Repeat("0", 64))
	said := oneLine(page)
	for text, says := range map[string]string{
		testkit.Read(t, "../examples/Pulumi.shop.yaml"): "one node costs %.2f USD an hour",
		whole: "the nodes cost %.2f USD an hour while the job runs",
		strings.Replace(whole, "suspend: true", "suspend: false", 1): "the nodes cost %.2f USD an hour while the job runs",
	} {
		stack := testkit.Must(config.Load(testkit.Parse(t, text).Get, nil))(t)
		assert.Empty(t, stack.Warnings())
		plan := stack.Plan()
		require.NotNil(t, plan.HourlyCost)
		says = fmt.Sprintf(says, *plan.HourlyCost)
		assert.True(t, strings.Contains(said, says), "the page does not say that %s", says)
	}
}

// TestPageOfCapacity: what docs/guides/capacity.md shows first is in the plan of prod.
func TestPageOfCapacity(t *testing.T) {
	plan := testkit.Must(config.Load(testkit.Parse(t, testkit.Read(t, "../Pulumi.prod.yaml")).Get, nil))(t).Plan().String()
	_, shown, _ := strings.Cut(testkit.Read(t, "../docs/guides/capacity.md"), "    $ make preview STACK=prod DIFF=1\n    …\n")
	shown, _, found := strings.Cut(shown, "\nNODES ")
	require.True(t, found)
	for line := range strings.Lines(strings.ReplaceAll(shown, "    …\n", "")) {
		assert.Contains(t, plan, strings.TrimPrefix(line, "    "))
	}
}

// oneLine returns a text without the breaks of its lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
