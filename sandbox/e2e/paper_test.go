package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optdestroy"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optpreview"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	fakeextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"persia/sandbox/gcp"
	"persia/sandbox/gcp/google"
	"persia/sandbox/kubeprovider"
	"persia/sandbox/provider"
	"persia/stack"
)

// paper is the sandbox's Kubernetes provider without a cluster: it plans as that does,
// and every object is at once as it was asked for, with what an API server adds and the
// program reads.
type paper struct {
	*kubeprovider.Provider
	*paperCluster
}

// paperCluster is shared by the objects of all providers of a stack.
type paperCluster struct {
	mu sync.Mutex
	// written counts creations, updates and deletions.
	written int
	// objects are the existing objects, by the names of the resources.
	objects map[resource.URN]resource.PropertyMap
	// stuck are the kinds and names of resources that are not deleted.
	stuck map[string]bool
	// creating, unless it is nil, comes before the creation of a kind and name, and may refuse it.
	creating func(ctx context.Context, resource string) error
}

func newPaperCluster() *paperCluster {
	return &paperCluster{objects: map[resource.URN]resource.PropertyMap{}, stuck: map[string]bool{}}
}

// keep keeps an object as the API server does: with a version of its own.
func (c *paperCluster) keep(urn resource.URN, inputs resource.PropertyMap) resource.PropertyMap {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written++
	c.objects[urn] = kept(inputs, strconv.Itoa(c.written))
	return c.objects[urn].Copy()
}

// change changes the one object of a kind and a name, as a person would by hand. Without a change,
// it deletes the object.
func (c *paperCluster) change(t *testing.T, kind, name string, change func(object resource.PropertyMap)) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	found := 0
	for urn, object := range c.objects {
		if string(urn.Type().Name()) != kind || urn.Name() != name {
			continue
		}
		found++
		if change == nil {
			delete(c.objects, urn)
			continue
		}
		change(object)
	}
	require.Equal(t, 1, found, "%s %s", kind, name)
}

func (paper) CheckConfig(_ context.Context, req plugin.CheckConfigRequest) (plugin.CheckConfigResponse, error) {
	return plugin.CheckConfigResponse{Properties: req.News}, nil
}

func (paper) Configure(context.Context, plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	return plugin.ConfigureResponse{}, nil
}

func (p paper) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	if req.Preview {
		return plugin.CreateResponse{Properties: req.Properties}, nil
	}
	if p.creating != nil {
		if err := p.creating(ctx, string(req.URN.Type().Name())+" "+req.URN.Name()); err != nil {
			return plugin.CreateResponse{}, err
		}
	}
	object := p.keep(req.URN, req.Properties)
	metadata := object["metadata"].ObjectValue()
	return plugin.CreateResponse{ID: resource.ID(metadata["name"].StringValue()), Properties: object}, nil
}

func (p paper) Update(_ context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	if req.Preview {
		return plugin.UpdateResponse{Properties: req.NewInputs}, nil
	}
	return plugin.UpdateResponse{Properties: p.keep(req.URN, req.NewInputs)}, nil
}

// kept returns an object as the API server keeps it.
func kept(inputs resource.PropertyMap, version string) resource.PropertyMap {
	object := inputs.Copy()
	set := func(part, field resource.PropertyKey, value string) {
		fields := resource.PropertyMap{}
		if object[part].IsObject() {
			fields = object[part].ObjectValue().Copy()
		}
		if fields[field].IsNull() {
			fields[field] = resource.NewProperty(value)
		}
		object[part] = resource.NewProperty(fields)
	}
	set("metadata", "resourceVersion", version)
	set("metadata", "uid", "uid-"+version)
	if object["kind"].StringValue() == "Service" {
		set("spec", "clusterIP", "10.1.0.9")
	}
	return object
}

func (p paper) Read(_ context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	object, found := p.objects[req.URN]
	if !found {
		return plugin.ReadResponse{}, nil
	}
	return plugin.ReadResponse{ReadResult: plugin.ReadResult{ID: req.ID, Inputs: req.Inputs, Outputs: object.Copy()}}, nil
}

func (p paper) Delete(_ context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	if p.stuck[string(req.URN.Type().Name())+" "+req.URN.Name()] {
		return plugin.DeleteResponse{}, fmt.Errorf("%s is not deleted", req.URN)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written++
	delete(p.objects, req.URN)
	return plugin.DeleteResponse{}, nil
}

// realEngine is a stack in the hands of Pulumi's engine, with the simulated Google Cloud
// and a cluster on paper: it takes seconds to bring up, without a control plane.
type realEngine struct {
	*testing.T
	*paperCluster
	auto.Stack
	cloud *google.Cloud
	nodes kubernetes.Interface
}

// newRealEngine returns a stack whose program reads the files of a folder.
func newRealEngine(t *testing.T, folder, name string, file object) realEngine {
	t.Helper()
	project, err := os.ReadFile(filepath.Join(repository, "Pulumi.yaml"))
	require.NoError(t, err)
	cli, err := auto.NewPulumiCommand(&auto.PulumiCommandOptions{Root: filepath.Dir(filepath.Dir(tools.Pulumi))})
	require.NoError(t, err)
	e := realEngine{T: t, paperCluster: newPaperCluster(), cloud: google.New(t.TempDir(), google.Settings{}), nodes: fake.NewSimpleClientset()}
	cloud, err := gcp.NewOn("7.38.0", &rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("certificate")}},
		e.nodes, fakeExtensions(), e.cloud)
	require.NoError(t, err)
	serving, end := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(end)
	served, err := provider.Serve(serving, cloud)
	require.NoError(t, err)
	kube, err := provider.ServeEach(serving, func() plugin.Provider { return paper{kubeprovider.New("4.30.0", ""), e.paperCluster} })
	require.NoError(t, err)

	dir := t.TempDir()
	for _, inside := range []string{"project", "state", "home"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, inside), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "project", "Pulumi.yaml"), project, 0o600))
	// In the place of a folder of logs, as the sandbox has it: see folder.withoutLogs.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "home", "logs"), nil, 0o600))
	workspace, err := auto.NewLocalWorkspace(t.Context(),
		auto.Pulumi(quiet{cli}), auto.WorkDir(filepath.Join(dir, "project")), auto.PulumiHome(filepath.Join(dir, "home")),
		auto.SecretsProvider("passphrase"),
		auto.Program(func(ctx *pulumi.Context) error { return stack.DeployFrom(ctx, os.DirFS(folder)) }),
		auto.EnvVars(map[string]string{
			"PULUMI_BACKEND_URL":                          "file://" + filepath.Join(dir, "state"),
			"PULUMI_CONFIG_PASSPHRASE":                    "test",
			"PULUMI_DEBUG_PROVIDERS":                      fmt.Sprintf("gcp:%d,kubernetes:%d", served.Port(), kube.Port()),
			"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
			"PULUMI_SKIP_UPDATE_CHECK":                    "true",
			"GOGC":                                        "400",
		}))
	require.NoError(t, err)
	e.Stack, err = auto.UpsertStack(t.Context(), name, workspace)
	require.NoError(t, err)
	e.configure(file)
	return e
}

// configure writes the stack file.
func (e realEngine) configure(file object) {
	e.Helper()
	secrets := auto.ConfigMap{}
	written := object{}
	for key, value := range file {
		written[key] = withoutSecrets(value, key, secrets)
	}
	text, err := yaml.Marshal(object{"config": written})
	require.NoError(e, err)
	path := filepath.Join(e.Workspace().WorkDir(), "Pulumi."+e.Name()+".yaml")
	require.NoError(e, os.WriteFile(path, text, 0o600))
	if len(secrets) > 0 {
		require.NoError(e, e.SetAllConfigWithOptions(e.Context(), secrets, &auto.ConfigOptions{Path: true}))
	}
}

// fakeExtensions is client-go's fake of an API server that serves every kind as soon as
// it is there.
func fakeExtensions() extensions.Interface {
	client := fakeextensions.NewSimpleClientset()
	client.PrependReactor("create", "customresourcedefinitions", func(action k8stesting.Action) (bool, runtime.Object, error) {
		definition := action.(k8stesting.CreateAction).GetObject().(*extensionsv1.CustomResourceDefinition)
		definition.Status.Conditions = []extensionsv1.CustomResourceDefinitionCondition{
			{Type: extensionsv1.Established, Status: extensionsv1.ConditionTrue},
		}
		return false, nil, nil
	})
	return client
}

// withoutSecrets leaves secrets out of a value, and adds them to others by their paths.
func withoutSecrets(value any, path string, secrets auto.ConfigMap) any {
	switch value := value.(type) {
	case object:
		open := object{}
		for name, inner := range value {
			if object, ok := inner.(object); ok && object["secure"] != nil {
				secrets[path+"."+name] = auto.ConfigValue{Value: fmt.Sprint(object["secure"]), Secret: true}
				continue
			}
			open[name] = withoutSecrets(inner, path+"."+name, secrets)
		}
		return open
	case []any:
		open := []any{}
		for i, inner := range value {
			open = append(open, withoutSecrets(inner, fmt.Sprintf("%s[%d]", path, i), secrets))
		}
		return open
	default:
		return value
	}
}

// quiet is the CLI without the calls that the Automation API makes to say what is not
// asked here. Each takes a process.
type quiet struct{ auto.PulumiCommand }

func (q quiet) Run(ctx context.Context, dir string, stdin io.Reader, stdout, stderr []io.Writer, env []string, args ...string) (string, string, int, error) {
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "stack output":
		return "{}", "", 0, nil
	case "stack history":
		return "[]", "", 0, nil
	}
	return q.PulumiCommand.Run(ctx, dir, stdin, stdout, stderr, env, args...)
}

// engineChanges runs an operation, and returns the number of resources that it changed, by
// operation.
func engineChanges(t *testing.T, operate func(chan<- events.EngineEvent) error) map[string]int {
	t.Helper()
	stream := make(chan events.EngineEvent)
	found := make(chan map[string]int)
	go func() {
		changed := map[string]int{}
		for event := range stream {
			if event.SummaryEvent == nil {
				continue
			}
			for operation, count := range event.SummaryEvent.ResourceChanges {
				if operation != "same" {
					changed[string(operation)] = count
				}
			}
		}
		found <- changed
	}()
	require.NoError(t, operate(stream))
	return <-found
}

func (e realEngine) up() map[string]int {
	e.Helper()
	return engineChanges(e.T, func(stream chan<- events.EngineEvent) error {
		_, err := e.Stack.Up(e.Context(), optup.EventStreams(stream))
		return err
	})
}

func (e realEngine) preview() map[string]int {
	e.Helper()
	return engineChanges(e.T, func(stream chan<- events.EngineEvent) error {
		_, err := e.Stack.Preview(e.Context(), optpreview.EventStreams(stream))
		return err
	})
}

func (e realEngine) refresh() map[string]int {
	e.Helper()
	return engineChanges(e.T, func(stream chan<- events.EngineEvent) error {
		_, err := e.Stack.Refresh(e.Context(), optrefresh.EventStreams(stream))
		return err
	})
}

func (e realEngine) destroy() (map[string]int, error) {
	var failed error
	changed := engineChanges(e.T, func(stream chan<- events.EngineEvent) error {
		_, failed = e.Stack.Destroy(e.Context(), optdestroy.EventStreams(stream))
		return nil
	})
	return changed, failed
}
