package tests

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

var plans = flag.String("plans", "", "a folder to write the whole plan of each stack file to")

// inFull are the stacks whose golden file is the whole plan: the largest one, and the one
// with PEDL. The others share most of their resources with these.
var inFull = []string{"prod", "pedl"}

// TestGoldenPlans compares everything that each stack file registers with a file: types, names, parents, dependencies,
// options and inputs. A changed name or parent replaces a resource in every stack.
func TestGoldenPlans(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "Pulumi."), ".yaml")
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, programtest.DeployFile(t, path))
			if *plans != "" {
				require.NoError(t, os.WriteFile(filepath.Join(*plans, name+".plan.yaml"), []byte(plan.text()), 0o644))
			}
			if slices.Contains(inFull, name) {
				testkit.AssertFile(t, name+".plan.yaml", plan.text())
			} else {
				testkit.AssertFile(t, name+".digests", plan.digests()) // scripts/plan-diff.sh shows what has changed
			}
		})
	}
}

// plan is everything that a stack registers, sorted by URN.
type plan []resourcePlan

// resourcePlan is one resource of a plan: a [plannedResource] as YAML.
type resourcePlan struct{ urn, yaml string }

func (p plan) text() string {
	var text strings.Builder
	for _, r := range p {
		text.WriteString("---\n" + r.yaml)
	}
	return text.String()
}

// digests has a line for each resource: the start of its SHA-256, and its URN.
func (p plan) digests() string {
	var lines strings.Builder
	for _, r := range p {
		fmt.Fprintf(&lines, "%.8x  %s\n", sha256.Sum256([]byte(r.yaml)), r.urn)
	}
	return lines.String()
}

// plannedResource is a resource as a golden file shows it, without options that are unset.
type plannedResource struct {
	URN                 string         `json:"urn"`
	Parent              string         `json:"parent,omitempty"`
	Provider            string         `json:"provider,omitempty"`
	DependsOn           []string       `json:"dependsOn,omitempty"`
	DeletedWith         string         `json:"deletedWith,omitempty"`
	ImportID            string         `json:"importId,omitempty"`
	Protect             bool           `json:"protect,omitempty"`
	RetainOnDelete      bool           `json:"retainOnDelete,omitempty"`
	DeleteBeforeReplace bool           `json:"deleteBeforeReplace,omitempty"`
	IgnoreChanges       []string       `json:"ignoreChanges,omitempty"`
	ReplaceOnChanges    []string       `json:"replaceOnChanges,omitempty"`
	SecretOutputs       []string       `json:"additionalSecretOutputs,omitempty"`
	Timeouts            map[string]any `json:"customTimeouts,omitempty"`
	Aliases             []string       `json:"aliases,omitempty"`
	Inputs              any            `json:"inputs"`
}

func planOf(t *testing.T, r *testkit.Recorder) plan {
	t.Helper()
	var plan plan
	for _, registration := range r.Resources {
		text := testkit.Must(yaml.Marshal(planned(registration)))(t)
		plan = append(plan, resourcePlan{testkit.ShortURN(registration.URN), string(text)})
	}
	slices.SortFunc(plan, func(a, b resourcePlan) int { return strings.Compare(a.urn, b.urn) })
	return plan
}

func planned(r testkit.Resource) plannedResource {
	rpc := r.RegisterRPC
	planned := plannedResource{
		URN:                 testkit.ShortURN(r.URN),
		Parent:              testkit.ShortURN(rpc.GetParent()),
		DeletedWith:         testkit.ShortURN(rpc.GetDeletedWith()),
		ImportID:            rpc.GetImportId(),
		Protect:             rpc.GetProtect(),
		RetainOnDelete:      rpc.GetRetainOnDelete(),
		DeleteBeforeReplace: rpc.GetDeleteBeforeReplace(),
		IgnoreChanges:       rpc.GetIgnoreChanges(),
		ReplaceOnChanges:    rpc.GetReplaceOnChanges(),
		SecretOutputs:       rpc.GetAdditionalSecretOutputs(),
		Timeouts:            timeouts(rpc.GetCustomTimeouts()),
		Inputs:              redacted(resource.NewProperty(r.Inputs)),
	}
	if r.Provider != "" {
		planned.Provider = testkit.ShortURN(r.Provider[:strings.LastIndex(r.Provider, "::")])
	}
	for _, urn := range r.Dependencies() {
		planned.DependsOn = append(planned.DependsOn, testkit.ShortURN(urn))
	}
	slices.Sort(planned.DependsOn)
	for _, alias := range rpc.GetAliases() {
		// The spaces of this form vary from build to build.
		planned.Aliases = append(planned.Aliases, strings.Join(strings.Fields(alias.String()), " "))
	}
	return planned
}

func timeouts(given *pulumirpc.RegisterResourceRequest_CustomTimeouts) map[string]any {
	set := map[string]any{}
	for name, value := range map[string]string{"create": given.GetCreate(), "update": given.GetUpdate(), "delete": given.GetDelete()} {
		if value != "" {
			set[name] = value
		}
	}
	return set
}

// redacted returns a value as plain data, with a mark in place of each secret.
func redacted(value resource.PropertyValue) any {
	switch {
	case value.IsSecret():
		return "[secret]"
	case value.IsComputed():
		return "[unknown]"
	case value.IsOutput():
		output := value.OutputValue()
		switch {
		case output.Secret:
			return "[secret]"
		case !output.Known:
			return "[unknown]"
		}
		return redacted(output.Element)
	case value.IsResourceReference():
		return "[resource " + testkit.ShortURN(string(value.ResourceReferenceValue().URN)) + "]"
	case value.IsArray():
		list := []any{}
		for _, element := range value.ArrayValue() {
			list = append(list, redacted(element))
		}
		return list
	case value.IsObject():
		object := map[string]any{}
		for name, field := range value.ObjectValue() {
			object[string(name)] = redacted(field)
		}
		return object
	case value.IsString():
		return abridged(value.StringValue())
	default:
		return value.Mappable()
	}
}

// abridged returns a text, or the digest of a long one. Scripts and dashboards have tests
// of their own, and their lines would hide what a change does to the plan.
func abridged(text string) string {
	lines := strings.Count(text, "\n")
	if lines <= 20 {
		return text
	}
	return fmt.Sprintf("[%d lines, sha256 %x]", lines, sha256.Sum256([]byte(text)))
}

const root = ".."

func readYAML(t testing.TB, name string, into any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(readText(t, name)), into), name)
}

func readText(t testing.TB, path string) string { return testkit.Read(t, filepath.Join(root, path)) }
