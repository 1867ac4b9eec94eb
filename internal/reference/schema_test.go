package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/config/input"
	"persia/internal/testkit"
)

const root = "../.."

func TestSchemaIsCurrent(t *testing.T) {
	got, err := Schema(sectionsOf(t))
	require.NoError(t, err)
	path := filepath.Join(root, testkit.SchemaFile)
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, string(want) == string(got),
		"%s is not what package config says: go run ./internal/reference/cmd writes it anew", testkit.SchemaFile)
}

func sectionsOf(t *testing.T) []*Section {
	t.Helper()
	sections, err := Sections(source)
	require.NoError(t, err)
	return sections
}

func TestSectionsHaveNamesOfTheirOwn(t *testing.T) {
	names := map[string]string{}
	for _, s := range sectionsOf(t) {
		if s.Name != "" {
			assert.Empty(t, names[s.Name], "%s", s.Path)
			names[s.Name] = s.Path
		}
	}
	assert.Greater(t, len(names), 50)
}

// change replaces a text of a stack file with another one.
type change struct{ before, after string }

// edited returns the stack file of dev after a change.
func edited(t *testing.T, c change) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Pulumi.dev.yaml"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), c.before), "%q", c.before)
	return []byte(strings.Replace(string(text), c.before, c.after, 1))
}

// TestSchemaRefuses checks which mistakes an editor marks, and where.
func TestSchemaRefuses(t *testing.T) {
	schema := testkit.ReadSchema(t, root)
	const role = "      embeddingWorker:\n        replicas: 1\n"
	for name, c := range map[string]struct {
		change
		at, says string
	}{
		"unknown key":                   {change{"persia:storage:", "persia:volume:"}, "/config", "persia:volume"},
		"unknown key in the short form": {change{"persia:storage:", "volume:"}, "/config", "volume"},
		"missing key":                   {change{"  persia:nodePools:", "  gcp:nodePools:"}, "/config", "persia:nodePools"},
		"misspelt key of Pulumi":        {change{"\nconfig:\n", "\nencryptionSalt: v1\nconfig:\n"}, "''", "encryptionSalt"},
		"misspelt field":                {change{"nodes: 1", "node: 1"}, "/config/persia:nodePools/0", "'node'"},
		"misspelt field of a role":      {change{role, "      embeddingWorker:\n        replcas: 1\n"}, "/config/persia:jobs/0/embeddingWorker", "'replcas'"},
		"missing field":                 {change{"      machineType: g2-standard-32\n", ""}, "/config/persia:nodePools/0", "machineType"},
		"missing region":                {change{"    region: us-central1\n", ""}, "/config/persia:cluster", "region"},
		"job without a name":            {change{"- name: adult-income", "- runId: first"}, "/config/persia:jobs/0", "name"},
		"text for a number":             {change{"nodes: 1", `nodes: "1"`}, "/config/persia:nodePools/0/nodes", "string"},
		"fraction for a number":         {change{"nodes: 1", "nodes: 1.5"}, "/config/persia:nodePools/0/nodes", "integer"},
		"less than nothing":             {change{"nodes: 1", "nodes: -1"}, "/config/persia:nodePools/0/nodes", "minimum"},
		"zero for a default":            {change{"nodes: 1", "nodes: 1\n      maxPodsPerNode: 0"}, "/config/persia:nodePools/0/maxPodsPerNode", "minimum"},
		"number for a text":             {change{`value: "1"`, "value: 1"}, "/config/persia:jobs/0/nnWorker/env/1/value", "number"},
		"text for true or false":        {change{"deletionProtection: false", "deletionProtection: no way"}, "/config/persia:cluster/deletionProtection", "boolean"},
		"object for a list":             {change{"zones: [us-central1-a]", "zones: {a: b}"}, "/config/persia:cluster/zones", "array"},
		"text for an object":            {change{"gpu: {type: nvidia-l4, count: 1}", "gpu: nvidia-l4"}, "/config/persia:nodePools/0/gpu", "object"},
		"no value of an enumeration":    {change{"installer: managed", "installer: manual"}, "/config/persia:nvidiaDriver/installer", "'ubuntu-daemonset'"},
		"no value of a tag's list":      {change{"zones: [us-central1-a]", "releaseChannel: regular\n    zones: [us-central1-a]"}, "/config/persia:cluster/releaseChannel", "'REGULAR'"},
		"no value, in a list":           {change{"size: 10Gi", "size: 10Gi\n      accessModes: [RWX]"}, "/config/persia:storage/0/accessModes/0", "'ReadWriteMany'"},
		"no quantity":                   {change{"size: 10Gi", "size: 10 GB"}, "/config/persia:storage/0/size", "pattern"},
		"number for a quoted quantity":  {change{"size: 10Gi", "size: 10"}, "/config/persia:storage/0/size", "number"},
		"no quantity of a resource":     {change{"memory: 2Gi", "memory: 2GiB"}, "/config/persia:nats/resources/requests/memory", "pattern"},
		"misspelt field of Kubernetes":  {change{`value: "1"`, "valueForm: {}"}, "/config/persia:jobs/0/nnWorker/env/1", "'valueForm'"},
		"secret where none may be":      {change{"size: 10Gi", "size: {secure: v1:abc}"}, "/config/persia:storage/0/size", "object"},
		"secret with more":              {change{"    size: 1\n", "    size: 1\n    users: [{name: a, password: {secure: v1:abc, b: c}}]\n"}, "/config/persia:nats/users/0/password", "'b'"},
	} {
		t.Run(name, func(t *testing.T) {
			err := schema.Check(t, edited(t, c.change))
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.at)
			assert.Contains(t, err.Error(), c.says)
		})
	}
}

func TestSchemaAccepts(t *testing.T) {
	schema := testkit.ReadSchema(t, root)
	const users = "    size: 1\n    users: [{name: a, password: "
	for name, c := range map[string]change{
		"nothing else":                   {},
		"short form of a key":            {"persia:storage:", "storage:"},
		"key of a provider":              {"\nconfig:\n", "\nconfig:\n  gcp:region: us-central1\n  kubernetes:renderYamlToDirectory: out\n  pulumi:disable-default-providers: [\"*\"]\n"},
		"what Pulumi writes":             {"\nconfig:\n", "\nencryptionsalt: v1:abc\nsecretsprovider: gcpkms://a\nencryptedkey: abc\nconfig:\n"},
		"environment that is defined":    {"\nconfig:\n", "\nenvironment: {imports: [a], values: {b: c}}\nconfig:\n"},
		"secret":                         {"    size: 1\n", users + "{secure: v1:abc}}]\n"},
		"text for a secret":              {"    size: 1\n", users + "a}]\n"},
		"secret certificate":             {"    size: 1\n", "    size: 1\n    tls: {clients: {ca: {secure: v1:a}, certificate: {secure: v1:b}, key: {secure: v1:c}}}\n"},
		"number for a quantity":          {"cpu: 500m", "cpu: 1"},
		"quantity with a sign":           {"cpu: 500m", `cpu: "+1.5"`},
		"older name of a role":           {"      embeddingWorker:", "      middleware:"},
		"older name of a field":          {"      persiaEnv:\n", "      globalConfigPath: /a.yml\n      persiaEnv:\n"},
		"role that is left to the job":   {"        replicas: 1\n        nodePool: gpu\n        nprocPerNode", "        replicas: 1\n        nprocPerNode"},
		"volume of Kubernetes":           {"      persiaEnv:\n", "      volumes: [{name: a, persistentVolumeClaim: {claimName: b}}, {name: c, emptyDir: {sizeLimit: 1Gi}}]\n      persiaEnv:\n"},
		"label of any name":              {"nodes: 1", "nodes: 1\n      labels: {example.com/team: ranking}"},
		"description of a machine type":  {"persia:machineTypes: {}", "persia:machineTypes: {x5-metal: {cpus: 8, memory: 64Gi, hourlyPrice: 1.5}}"},
		"taint without a value":          {"nodes: 1", "nodes: 1\n      taints: [{key: a, effect: NoExecute}]"},
		"autoscaling from zero":          {"nodes: 1", "autoscaling: {minNodes: 0, maxNodes: 1}"},
		"soft delete that is turned off": {"hostPath: {path: /var/lib/persia}", "gcsFuse: {bucket: a, create: {softDeleteDays: 0}}"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.before == "" {
				c = change{"persia-dev", "persia-dev"}
			}
			assert.NoError(t, schema.Check(t, edited(t, c)))
		})
	}
}

func TestSchemaLeavesKeysToAnEnvironment(t *testing.T) {
	schema := testkit.ReadSchema(t, root)
	assert.NoError(t, schema.Check(t, []byte("environment: [persia/dev]\nconfig: {persia:storage: []}\n")))
	assert.Error(t, schema.Check(t, []byte("config: {persia:storage: []}\n")))
}

// stack is a stack file, as written and as Load completes it.
type stack struct {
	written map[string]any
	loaded  *config.Stack
}

// stacks returns the stacks of testdata, which together have every object with defaults.
func stacks(t *testing.T) []stack {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := make([]stack, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, testkit.ReadSchema(t, root).Check(t, text), file)
		written, err := input.ParseStackFile(text, config.Namespace)
		require.NoError(t, err, file)
		loaded, err := config.Load(written.Config.Get, nil)
		require.NoError(t, err, file)
		found[i] = stack{written.Config, loaded}
	}
	return found
}

// instance is an object of a stack, as written and as Load completes it.
type instance struct {
	section *Section
	written map[string]any
	loaded  reflect.Value
}

// instances returns all objects of a stack by their sections.
func instances(t *testing.T, s stack) []instance {
	t.Helper()
	sections := map[string]*Section{}
	for _, section := range sectionsOf(t) {
		sections[section.Path] = section
	}
	var found []instance
	var visit func(typ Type, written any, loaded reflect.Value)
	visit = func(typ Type, written any, loaded reflect.Value) {
		loaded = reflect.Indirect(loaded)
		switch typ.Kind {
		case List:
			for i, element := range written.([]any) {
				visit(*typ.Elem, element, loaded.Index(i))
			}
		case Map:
			for name, element := range written.(map[string]any) {
				visit(*typ.Elem, element, loaded.MapIndex(reflect.ValueOf(name).Convert(loaded.Type().Key())))
			}
		case Object:
			section, object := sections[typ.Section], written.(map[string]any)
			if section.Kubernetes {
				return
			}
			found = append(found, instance{section, object, loaded})
			for _, f := range fieldsOf(loaded.Type()) {
				value := loaded.FieldByIndex(f.Index)
				inner, ok := object[f.name]
				if !ok && value.Kind() == reflect.Struct {
					// An omitted object has defaults too.
					inner, ok = map[string]any{}, true
				}
				if ok {
					visit(section.field(f.name).Type, inner, value)
				}
			}
		}
	}
	for _, key := range config.Keys() {
		f, ok := config.StackField(key)
		require.True(t, ok)
		if value, written := s.written[key]; written {
			visit(sections[key].Type, value, reflect.ValueOf(s.loaded).Elem().FieldByIndex(f.Index))
		}
	}
	return found
}

// excluded are the objects whose defaults another field removes: the other upgrade strategy,
// or an existing database.
var excluded = []string{"Upgrade", "PEDLPostgreSQL", "PostgreSQLImage", "PostgreSQLPersistence", "PostgreSQLService"}

// TestDefaultsAreThoseOfTheProgram compares all defaults in comments with what Load sets.
func TestDefaultsAreThoseOfTheProgram(t *testing.T) {
	seen := map[string]bool{}
	var objects []instance
	for _, s := range stacks(t) {
		objects = append(objects, instances(t, s)...)
	}
	for _, object := range objects {
		for _, f := range fieldsOf(object.loaded.Type()) {
			field := object.section.field(f.name)
			if _, written := object.written[f.name]; written || field.Default == "" {
				continue
			}
			name := object.section.Name + "." + f.name
			value := reflect.Indirect(object.loaded.FieldByIndex(f.Index))
			if slices.Contains(excluded, object.section.Name) && (!value.IsValid() || value.IsZero()) {
				continue
			}
			seen[name] = true
			assert.Equal(t, field.Default, fmt.Sprint(value), name)
			assert.NotNil(t, defaultValue(*field), "%s: %q is no value of the field", name, field.Default)
		}
	}
	for _, s := range sectionsOf(t) {
		for _, f := range s.Fields {
			// A default of false is the zero value, and needs no example.
			if f.Default != "" && f.Default != "false" {
				assert.True(t, seen[s.Name+"."+f.Name], "no stack in testdata has %s without %s", s.Path, f.Name)
			}
		}
	}
}

// zero lists required fields that may be 0, which the program cannot distinguish from an omission.
var zero = []string{"minNodes", "lun"}

// TestRequiredFieldsAreRequired omits each required field in turn.
func TestRequiredFieldsAreRequired(t *testing.T) {
	schema, left := testkit.ReadSchema(t, root), 0
	for _, s := range stacks(t) {
		for _, object := range instances(t, s) {
			for _, name := range required(object.section.Fields) {
				value, written := object.written[name]
				if !written || slices.Contains(zero, name) {
					continue
				}
				delete(object.written, name)
				_, err := config.Load(input.Values(s.written).Get, nil)
				assert.Error(t, err, "%s without %s", object.section.Path, name)
				assert.Error(t, schema.CheckConfig(t, s.written), "%s without %s", object.section.Path, name)
				object.written[name] = value
				left++
			}
		}
	}
	assert.Greater(t, left, 50)
}
