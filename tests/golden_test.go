package tests

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/pulumitest"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestGoldenPlans compares everything that each stack file registers with a file:
// types, names, parents, dependencies, options and inputs. A changed name or parent
// replaces a resource in every stack.
func TestGoldenPlans(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "Pulumi."), ".yaml")
		t.Run(name, func(t *testing.T) {
			recorder := programtest.DeployFile(t, path)
			programtest.AssertFile(t, name+".plan.yaml", planOf(t, recorder))
		})
	}
}

// plannedResource is a resource as a golden file shows it. Unset options are left out.
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

// planOf is everything that was registered, by URN, as YAML.
func planOf(t *testing.T, r *pulumitest.Recorder) string {
	t.Helper()
	registrations := slices.Clone(r.Resources)
	slices.SortFunc(registrations, func(a, b pulumitest.Resource) int { return strings.Compare(a.URN, b.URN) })
	var plan strings.Builder
	for _, registration := range registrations {
		text, err := yaml.Marshal(planned(registration))
		require.NoError(t, err)
		plan.WriteString("---\n")
		plan.Write(text)
	}
	return plan.String()
}

func planned(r pulumitest.Resource) plannedResource {
	rpc := r.RegisterRPC
	planned := plannedResource{
		URN:                 pulumitest.ShortURN(r.URN),
		Parent:              pulumitest.ShortURN(rpc.GetParent()),
		DeletedWith:         pulumitest.ShortURN(rpc.GetDeletedWith()),
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
		planned.Provider = pulumitest.ShortURN(r.Provider[:strings.LastIndex(r.Provider, "::")])
	}
	for _, urn := range r.Dependencies() {
		planned.DependsOn = append(planned.DependsOn, pulumitest.ShortURN(urn))
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

// redacted is a value as plain data, with a mark for each secret in it.
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
		return "[resource " + pulumitest.ShortURN(string(value.ResourceReferenceValue().URN)) + "]"
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

// abridged is a text, or a digest of a script or dashboard: those have tests of their
// own, and their lines would hide what a change does to the plan.
func abridged(text string) string {
	lines := strings.Count(text, "\n")
	if lines <= 20 {
		return text
	}
	return fmt.Sprintf("[%d lines, sha256 %x]", lines, sha256.Sum256([]byte(text)))
}
