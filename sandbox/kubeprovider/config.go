package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// config is the configuration of the provider.
type config struct {
	kubeconfig string // the content of a kubeconfig file, YAML or JSON, or its path
	context    string
	upsert     bool // creates take over objects that are there
}

// clusterIdentifier is the text by which Pulumi tells clusters apart.
const clusterIdentifier = "clusterIdentifier"

// enablePatchForce has updates take fields from other writers.
const enablePatchForce = "enablePatchForce"

// knownConfig are the settings that the sandbox's provider has. To ignore another one of the official
// provider might change what happens. The program always names the cluster and forces its updates.
var knownConfig = []resource.PropertyKey{"kubeconfig", "context", clusterIdentifier, enablePatchForce,
	"upsertExistingObjects", "version", "pluginDownloadURL"}

// The engine passes every value of a provider's configuration as a string, or as a secret one.
func readConfig(inputs resource.PropertyMap) config {
	text := func(key resource.PropertyKey) string {
		value := inputs[key]
		if value.IsSecret() {
			value = value.SecretValue().Element
		}
		if value.IsString() {
			return value.StringValue()
		}
		return ""
	}
	flag := func(key resource.PropertyKey) bool {
		return text(key) == "true" || inputs[key].IsBool() && inputs[key].BoolValue()
	}
	return config{text("kubeconfig"), text("context"), flag("upsertExistingObjects")}
}

// rest makes the configuration of a client for the cluster.
func (c config) rest() (*rest.Config, error) {
	if c.kubeconfig == "" {
		// The official provider falls back on the user's own kubeconfig. A
		// sandbox that did would be one mistake away from a real cluster.
		return nil, errors.New("kubeconfig is required: the sandbox never uses the one of the user who runs it")
	}
	var kubeconfig *clientcmdapi.Config
	var err error
	if filepath.IsAbs(c.kubeconfig) {
		kubeconfig, err = clientcmd.LoadFromFile(c.kubeconfig)
	} else {
		kubeconfig, err = clientcmd.Load([]byte(c.kubeconfig))
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*kubeconfig, &clientcmd.ConfigOverrides{CurrentContext: c.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return restConfig, onThisMachine(restConfig.Host)
}

// onThisMachine refuses a server elsewhere: a stack of an existing cluster that is
// brought up in the sandbox must not change that cluster.
func onThisMachine(server string) error {
	address, _, err := rest.DefaultServerURL(server, "", schema.GroupVersion{}, true)
	if err != nil {
		return fmt.Errorf("kubeconfig: server %q: %w", server, err)
	}
	if ip, err := netip.ParseAddr(address.Hostname()); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("kubeconfig: server %q: the sandbox talks to no cluster outside this machine", server)
}

// CheckConfig refuses a configuration from which it cannot build a client.
func (p *Provider) CheckConfig(_ context.Context, req plugin.CheckConfigRequest) (plugin.CheckConfigResponse, error) {
	resp := plugin.CheckConfigResponse{Properties: req.News}
	for key := range req.News {
		if !slices.Contains(knownConfig, key) && !strings.HasPrefix(string(key), "__") {
			resp.Failures = append(resp.Failures, plugin.CheckFailure{Property: key,
				Reason: fmt.Sprintf("the sandbox's Kubernetes provider has no option %s", key)})
		}
	}
	for _, key := range []resource.PropertyKey{clusterIdentifier, enablePatchForce} {
		if req.News[key].IsNull() {
			resp.Failures = append(resp.Failures, plugin.CheckFailure{Property: key, Reason: fmt.Sprintf("%s is required: "+
				"the sandbox's Kubernetes provider works only with it", key)})
		}
	}
	if req.News["kubeconfig"].IsComputed() {
		return resp, nil
	}
	if _, err := readConfig(req.News).rest(); err != nil {
		resp.Failures = append(resp.Failures, plugin.CheckFailure{Reason: err.Error()})
	}
	return resp, nil
}

// DiffConfig replaces the provider, and with it all that it manages, when it turns to another cluster.
func (p *Provider) DiffConfig(_ context.Context, req plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	diff := req.OldInputs.Diff(req.NewInputs)
	if diff == nil {
		return plugin.DiffConfigResponse{Changes: plugin.DiffNone}, nil
	}
	resp := plugin.DiffConfigResponse{Changes: plugin.DiffSome, ChangedKeys: diff.ChangedKeys()}
	if !req.OldInputs[clusterIdentifier].DeepEquals(req.NewInputs[clusterIdentifier]) {
		resp.ReplaceKeys = []resource.PropertyKey{clusterIdentifier}
	}
	return resp, nil
}

// Configure prepares the client. The engine does not call it while any value
// is unknown, as in a preview before the cluster exists.
func (p *Provider) Configure(_ context.Context, req plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	if req.Inputs.ContainsUnknowns() {
		return plugin.ConfigureResponse{}, nil
	}
	c := readConfig(req.Inputs)
	restConfig, err := c.rest()
	if err != nil {
		return plugin.ConfigureResponse{}, fmt.Errorf("configuring the Kubernetes provider: %w", err)
	}
	if plugin := restConfig.ExecProvider; plugin != nil {
		plugin.Command = p.pluginPath(plugin.Command)
	}
	restConfig.UserAgent = "persia-sandbox-kubernetes/" + p.Version
	restConfig.WarningHandlerWithContext = warnings{&p.Log}
	client, err := newClient(restConfig)
	if err != nil {
		return plugin.ConfigureResponse{}, fmt.Errorf("configuring the Kubernetes provider: %w", err)
	}
	client.upsert = c.upsert
	p.client.Store(client)
	return plugin.ConfigureResponse{}, nil
}

// pluginPath returns the path of a credential plugin in the provider's own folder, or else
// its name, which is looked up on the PATH.
func (p *Provider) pluginPath(name string) string {
	path := filepath.Join(p.plugins, name)
	if _, err := os.Stat(path); p.plugins == "" || err != nil {
		return name
	}
	return path
}
