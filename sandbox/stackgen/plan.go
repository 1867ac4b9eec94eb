package stackgen

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/config/stackfile"
	"persia/internal/mockcloud"
	"persia/stack"
)

// Objects are the Kubernetes objects of a stack: the program runs as it does under
// Pulumi, and what it registers is kept instead of created. The directory is that of
// the project.
func Objects(s Stack, directory string) ([]*unstructured.Unstructured, error) {
	r := &recorder{urns: map[string]bool{}}
	var secrets []string
	for key, value := range s {
		if holdsSecret(value) {
			secrets = append(secrets, key)
		}
	}
	err := pulumi.RunErr(stack.Deploy, func(info *pulumi.RunInfo) {
		info.Project, info.Stack, info.RootDirectory = "persia", "generated", directory
		info.Config, info.ConfigSecretKeys, info.Mocks = stackfile.Values(s).Texts(), secrets, r
	})
	return r.objects, err
}

// secretFields are those that only Pulumi's secrets may be in.
var secretFields = []string{"password", "postgresqlPassword", "key"}

// holdsSecret reports whether a value has such a field, in which the generator and the
// examples write a text instead of a secret. The key of a taint or of a reference is
// none.
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

// recorder stands in for the Pulumi engine.
type recorder struct {
	mu      sync.Mutex
	urns    map[string]bool
	objects []*unstructured.Unstructured
	cloud   mockcloud.Cloud
}

func (r *recorder) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := args.TypeToken + " " + args.RegisterRPC.GetParent() + " " + args.Name
	if r.urns[name] {
		return "", nil, fmt.Errorf("%s is registered twice", name)
	}
	r.urns[name] = true
	if args.Inputs["kind"].IsString() && args.Inputs["apiVersion"].IsString() {
		content, _ := plain(resource.NewProperty(args.Inputs)).(map[string]any)
		r.objects = append(r.objects, &unstructured.Unstructured{Object: content})
	}
	return args.Name + "-id", mockcloud.Outputs(args), nil
}

func (r *recorder) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	return r.cloud.Call(args)
}

// plain is a value as JSON has it, without what Pulumi says of it.
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
