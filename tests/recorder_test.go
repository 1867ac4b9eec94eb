package tests

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/mockcloud"
	"persia/internal/schematest"
	"persia/stack"
)

const root = ".."

// registration is one resource that the program registered.
type registration struct {
	pulumi.MockResourceArgs
	urn string
}

func (r registration) dependencies() []string { return r.RegisterRPC.GetDependencies() }

// thisStack is the label of what the stack of the tests has created.
const thisStack = "persia-stack-2a61c24b"

// cloud is what Google Cloud has, by its identifier.
type cloud = mockcloud.Cloud

// recorder stands in for the Pulumi engine and keeps what is registered.
type recorder struct {
	mu            sync.Mutex
	registrations []registration
	// cloud is what Google Cloud has before the program runs.
	cloud cloud
}

// NewResource records a resource. It refuses a URN that there is already, which
// the engine would, but its mock does not.
func (r *recorder) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	urn := urnOf(args)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.registrations {
		if other.urn == urn {
			return "", nil, fmt.Errorf("%s is registered twice", urn)
		}
	}
	r.registrations = append(r.registrations, registration{MockResourceArgs: args, urn: urn})
	return args.Name + "-id", mockcloud.Outputs(args), nil
}

// Call answers the functions that the program may call.
func (r *recorder) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	return r.cloud.Call(args)
}

// urnOf is the URN that the engine gives: it holds the types of the parents.
func urnOf(args pulumi.MockResourceArgs) string {
	types := args.TypeToken
	if parent := args.RegisterRPC.GetParent(); parent != "" {
		if parentTypes := resource.URN(parent).QualifiedType(); parentTypes != "pulumi:pulumi:Stack" {
			types = string(parentTypes) + "$" + types
		}
	}
	return fmt.Sprintf("urn:pulumi:%s::%s::%s::%s", "stack", "persia", types, args.Name)
}

// one finds the resource of a type and name.
func (r *recorder) one(t *testing.T, typeToken, name string) registration {
	t.Helper()
	for _, registration := range r.registrations {
		if registration.TypeToken == typeToken && registration.Name == name {
			return registration
		}
	}
	t.Fatalf("no %s %s among:\n%s", typeToken, name, strings.Join(r.urns(), "\n"))
	return registration{}
}

// all finds the resources of a type, of which there must be some.
func (r *recorder) all(t *testing.T, typeToken string) []registration {
	t.Helper()
	found := r.some(typeToken)
	require.NotEmpty(t, found, "no %s among:\n%s", typeToken, strings.Join(r.urns(), "\n"))
	return found
}

// some finds the resources of a type, if there are any.
func (r *recorder) some(typeToken string) []registration {
	var found []registration
	for _, registration := range r.registrations {
		if registration.TypeToken == typeToken {
			found = append(found, registration)
		}
	}
	return found
}

// before is what a resource comes after, by URN: its dependencies and its provider,
// and theirs.
func (r *recorder) before(registration registration) map[string]bool {
	byURN := map[string][]string{}
	for _, other := range r.registrations {
		byURN[other.urn] = other.needs()
	}
	before := map[string]bool{}
	for next := registration.needs(); len(next) > 0; {
		urn := next[0]
		next = next[1:]
		if !before[urn] {
			before[urn] = true
			next = append(next, byURN[urn]...)
		}
	}
	return before
}

// needs are what the engine has a resource come after, but for its parent.
func (r registration) needs() []string {
	needs := r.dependencies()
	if r.Provider != "" {
		// A provider's URN, and its id.
		needs = append(slices.Clip(needs), r.Provider[:strings.LastIndex(r.Provider, "::")])
	}
	return needs
}

// urns are sorted, and without what they all begin with.
func (r *recorder) urns() []string {
	var urns []string
	for _, registration := range r.registrations {
		urns = append(urns, strings.TrimPrefix(registration.urn, "urn:pulumi:stack::persia::"))
	}
	slices.Sort(urns)
	return urns
}

// at is the value at a path of names and numbers, like
// nodeConfig.guestAccelerators[0].type.
func at(t *testing.T, registration registration, path string) any {
	t.Helper()
	value, ok := lookup(t, registration, path)
	require.True(t, ok, "%s has no %s: %v", registration.urn, path, registration.Inputs)
	return value
}

// found is the value at a path, or nil.
func found(t *testing.T, registration registration, path string) any {
	t.Helper()
	value, _ := lookup(t, registration, path)
	return value
}

func lookup(t *testing.T, registration registration, path string) (any, bool) {
	t.Helper()
	parsed, err := resource.ParsePropertyPath(path)
	require.NoError(t, err)
	value, ok := parsed.Get(resource.NewObjectProperty(registration.Inputs))
	if !ok {
		return nil, false
	}
	return value.Mappable(), true
}

// object decodes a resource's inputs, as the Kubernetes object that they are.
func object[T any](t *testing.T, registration registration) T {
	t.Helper()
	require.False(t, registration.Inputs.ContainsUnknowns(), "inputs of %s", registration.urn)
	text, err := json.Marshal(registration.Inputs.Mappable())
	require.NoError(t, err)
	var object T
	require.NoError(t, yaml.UnmarshalStrict(text, &object), "inputs of %s", registration.urn)
	return object
}

// deploy runs the program over a stack's configuration.
func deploy(t testing.TB, configuration map[string]string) (*recorder, error) {
	t.Helper()
	return deployOver(t, configuration, nil)
}

// deployOver is deploy where Google Cloud has something already.
func deployOver(t testing.TB, configuration map[string]string, cloud cloud) (*recorder, error) {
	t.Helper()
	return run(t, pulumi.RunInfo{Config: configuration}, cloud)
}

// deployIn is deploy for a project in a directory of its own.
func deployIn(t testing.TB, directory string, configuration map[string]string) (*recorder, error) {
	t.Helper()
	return run(t, pulumi.RunInfo{Config: configuration, RootDirectory: directory}, nil)
}

func run(t testing.TB, info pulumi.RunInfo, cloud cloud) (*recorder, error) {
	t.Helper()
	recorder := &recorder{cloud: cloud}
	info.Project, info.Stack, info.Mocks = "persia", cmp.Or(info.Stack, "stack"), recorder
	if info.ConfigSecretKeys == nil {
		info.ConfigSecretKeys = secretKeys(info.Config)
	}
	ctx, err := pulumi.NewContext(t.Context(), info)
	require.NoError(t, err)
	err = pulumi.RunWithContext(ctx, stack.Deploy)
	if _, measured := t.(*testing.B); err == nil && !measured {
		assertInSchema(t, info.Config)
	}
	return recorder, err
}

// secretKeys are the keys with a password or a private key in them, which are encrypted
// in each stack file of the tests.
func secretKeys(configuration map[string]string) []string {
	var keys []string
	for key, text := range configuration {
		if slices.Contains([]string{"persia:nats", "persia:pedl"}, key) && secretField.MatchString(text) {
			keys = append(keys, key)
		}
	}
	return keys
}

var secretField = regexp.MustCompile(`"(password|postgresqlPassword|key)":"[^"]`)

// assertInSchema holds that the schema takes what the program takes.
func assertInSchema(t testing.TB, configuration map[string]string) {
	t.Helper()
	values := map[string]any{}
	for key, text := range configuration {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			value = text
		}
		values[key] = value
	}
	assert.NoError(t, schematest.Read(t, root).CheckConfig(t, values), "%s", schematest.File)
}

// deployStack runs the program over one of the repository's stack files.
func deployStack(t testing.TB, name string) *recorder {
	t.Helper()
	recorder, err := deploy(t, readStack(t, name))
	require.NoError(t, err)
	return recorder
}

// readStack is one of the repository's stack files as Pulumi hands it to the
// program.
func readStack(t testing.TB, name string) map[string]string {
	t.Helper()
	return readStackFile(t, "Pulumi."+name+".yaml")
}

// readStackFile is a stack file as Pulumi hands it to the program: text as it is,
// and anything else as JSON. Its path is from the root.
func readStackFile(t testing.TB, path string) map[string]string {
	t.Helper()
	var file struct {
		Config map[string]any `json:"config"`
	}
	readYAML(t, path, &file)
	require.NotEmpty(t, file.Config)
	configuration := map[string]string{}
	for key, value := range file.Config {
		if text, ok := value.(string); ok {
			configuration[key] = text
			continue
		}
		text, err := json.Marshal(decrypted(value))
		require.NoError(t, err)
		configuration[key] = string(text)
	}
	return configuration
}

// decrypted is a value with a text for each secret, as Pulumi hands it to the program.
func decrypted(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if secret, ok := value["secure"]; ok {
			return secret
		}
		for name, inner := range value {
			value[name] = decrypted(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = decrypted(inner)
		}
	}
	return value
}

func readYAML(t testing.TB, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), name)
}

// assertHides sees to it that a text has no secret, neither as it is nor as
// Kubernetes writes what a Secret holds.
func assertHides(t *testing.T, what, text, secret string) {
	t.Helper()
	assert.NotContains(t, text, secret, what)
	// What comes before the secret decides how its bytes fall into those of base64.
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		assert.NotContains(t, text, encoded[4:len(encoded)-4], what)
	}
}
