package config_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/stacktest"
)

// indented is a block of code in Markdown that is a stack file.
var indented = regexp.MustCompile(`(?m)^    config:\n(?:    .*\n)+`)

// TestReadme: the stack file in README.md is valid and whole, and a preview shows its cost.
func TestReadme(t *testing.T) {
	readme := read(t, "../README.md")
	blocks := indented.FindAllString(readme, -1)
	require.Len(t, blocks, 1)
	stack, err := config.Load(stacktest.Parse(t, regexp.MustCompile(`(?m)^    `).ReplaceAllString(blocks[0], "")).Get, nil)
	require.NoError(t, err)
	assert.Empty(t, stack.Warnings())
	plan := stack.Plan()
	assert.Positive(t, plan.Pods)
	require.NotNil(t, plan.HourlyCost, "README.md says that a preview shows the cost")
}

// TestReadmeCosts: dev and prod cost what README.md says.
func TestReadmeCosts(t *testing.T) {
	said := regexp.MustCompile("`dev` costs ([0-9.]+) USD an hour and `prod` ([0-9,]+) USD").FindStringSubmatch(read(t, "../README.md"))
	require.NotNil(t, said)
	for name, want := range map[string]struct{ format, said string }{
		"dev":  {"%.2f", said[1]},
		"prod": {"%.0f", strings.ReplaceAll(said[2], ",", "")},
	} {
		stack, err := config.Load(stacktest.Parse(t, read(t, "../Pulumi."+name+".yaml")).Get, nil)
		require.NoError(t, err, name)
		cost := stack.Plan().HourlyCost
		require.NotNil(t, cost, name)
		assert.Equal(t, fmt.Sprintf(want.format, *cost), want.said, name)
	}
}

// TestTutorialCost: the example shop costs what docs/start/your-own-model.md says.
func TestTutorialCost(t *testing.T) {
	said := regexp.MustCompile(`one node costs ([0-9.]+) USD an hour`).FindStringSubmatch(read(t, "../docs/start/your-own-model.md"))
	require.NotNil(t, said)
	stack, err := config.Load(stacktest.Parse(t, read(t, "../examples/Pulumi.shop.yaml")).Get, nil)
	require.NoError(t, err)
	cost := stack.Plan().HourlyCost
	require.NotNil(t, cost)
	assert.Equal(t, fmt.Sprintf("%.2f", *cost), said[1])
}
