package stackgen

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/config/input"
	"persia/internal/testkit"
	"persia/stack"
)

// Objects returns the Kubernetes objects of a stack. The directory is the project's.
func Objects(s Stack, directory string) ([]*unstructured.Unstructured, error) {
	r, err := deploy(s, directory)
	var objects []*unstructured.Unstructured
	for _, registered := range r.Resources {
		if inputs := registered.Inputs; inputs["kind"].IsString() && inputs["apiVersion"].IsString() {
			content, _ := plain(resource.NewProperty(inputs)).(map[string]any)
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
	return objects, err
}

// deploy runs the program as Pulumi does, and records the resources that the program registers
// instead of creating them.
func deploy(s Stack, directory string) (*testkit.Recorder, error) {
	r := &testkit.Recorder{}
	var secrets []string
	for key, value := range s {
		if holdsSecret(value) {
			secrets = append(secrets, key)
		}
	}
	err := pulumi.RunErr(stack.Deploy, func(info *pulumi.RunInfo) {
		info.Project, info.Stack, info.RootDirectory = "persia", "generated", directory
		info.Config, info.ConfigSecretKeys, info.Mocks = input.Values(s).Texts(), secrets, r
	})
	return r, err
}

// secretFields are the fields that only Pulumi secrets may be in.
var secretFields = []string{"password", "postgresqlPassword", "key"}

// holdsSecret reports whether a value has a field for which the generator and the examples write a
// text instead of a secret. The key of a taint or of a reference does not count.
func holdsSecret(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			text, ok := inner.(string)
			if ok && text != "" && slices.Contains(secretFields, name) && (name != "key" || value["certificate"] != nil) || holdsSecret(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, holdsSecret)
	}
	return false
}

// plain returns a value as JSON, without Pulumi's annotations.
func plain(value resource.PropertyValue) any {
	switch {
	case value.IsSecret():
		return plain(value.SecretValue().Element)
	case value.IsOutput():
		return plain(value.OutputValue().Element)
	case value.IsArray():
		items := []any{}
		for _, item := range value.ArrayValue() {
			items = append(items, plain(item))
		}
		return items
	case value.IsObject():
		object := map[string]any{}
		for name, inner := range value.ObjectValue() {
			object[string(name)] = plain(inner)
		}
		return object
	case value.IsNumber() && value.NumberValue() == float64(int64(value.NumberValue())):
		return int64(value.NumberValue())
	case value.IsNull(), value.IsComputed():
		return nil
	default:
		return value.Mappable()
	}
}
