package kubeprovider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"persia/sandbox/kubeprovider/cluster"
	"persia/sandbox/kubeprovider/object"
)

// config is the configuration of the provider. It accepts and ignores the keys of the official
// provider that have no effect here.
type config struct {
	kubeconfig string // the content of a kubeconfig file, YAML or JSON, or its path
	context    string
	cluster    string
	namespace  string // for objects that do not name theirs

	configMapMutable bool
	secretMutable    bool
	patchForce       bool // updates take fields from other writers
	upsert           bool // creates take over objects that are there
}

// refusedConfig are the settings of the official provider that the sandbox's does
// not have, where ignoring them would change what happens.
var refusedConfig = []struct {
	key     resource.PropertyKey
	allowed resource.PropertyValue
	reason  string
}{
	{"renderYamlToDirectory", resource.NewProperty(""), "the sandbox's Kubernetes provider applies objects, it does not render them"},
	{"enableServerSideApply", resource.NewProperty("true"), "the sandbox's Kubernetes provider updates by server-side apply only"},
	{"deleteUnreachable", resource.NewProperty("false"), "the sandbox's Kubernetes provider forgets no object that it cannot reach"},
	{"skipUpdateUnreachable", resource.NewProperty("false"), "the sandbox's Kubernetes provider skips no object that it cannot reach"},
}

// The engine passes every value of a provider's configuration as a string.
func readConfig(inputs resource.PropertyMap) (config, error) {
	text := func(key resource.PropertyKey) string {
		if v := inputs[key]; v.IsString() {
			return v.StringValue()
		}
		return ""
	}
	var errs []error
	flag := func(key resource.PropertyKey) bool {
		switch v := inputs[key]; {
		case v.IsBool():
			return v.BoolValue()
		case v.IsString() && v.StringValue() != "":
			b, err := strconv.ParseBool(v.StringValue())
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %q is neither true nor false", key, v.StringValue()))
			}
			return b
		}
		return false
	}
	c := config{
		kubeconfig:       text("kubeconfig"),
		context:          text("context"),
		cluster:          text("cluster"),
		namespace:        text("namespace"),
		configMapMutable: flag("enableConfigMapMutable"),
		secretMutable:    flag("enableSecretMutable"),
		patchForce:       flag("enablePatchForce"),
		upsert:           flag("upsertExistingObjects"),
	}
	return c, errors.Join(errs...)
}

// rest makes the configuration of a client for the cluster.
func (c config) rest() (*rest.Config, error) {
	if c.kubeconfig == "" {
		// The official provider falls back on the user's own kubeconfig. A
		// sandbox that did would be one mistake away from a real cluster.
		return nil, errors.New("kubeconfig is required: the sandbox never uses the one of the user who runs it")
	}
	kubeconfig, err := loadKubeconfig(c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	overrides := &clientcmd.ConfigOverrides{
		CurrentContext: c.context,
		Context:        clientcmdapi.Context{Cluster: c.cluster, Namespace: c.namespace},
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*kubeconfig, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return restConfig, onThisMachine(restConfig.Host)
}

func loadKubeconfig(pathOrContent string) (*clientcmdapi.Config, error) {
	if filepath.IsAbs(pathOrContent) {
		return clientcmd.LoadFromFile(pathOrContent)
	}
	return clientcmd.Load([]byte(pathOrContent))
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
	for _, refused := range refusedConfig {
		if v := req.News[refused.key]; v.IsNull() || v.DeepEquals(refused.allowed) {
			continue
		}
		resp.Failures = append(resp.Failures, plugin.CheckFailure{Property: refused.key, Reason: refused.reason})
	}
	c, err := readConfig(req.News)
	if err == nil && !req.News["kubeconfig"].IsComputed() {
		_, err = c.rest()
	}
	if err != nil {
		resp.Failures = append(resp.Failures, plugin.CheckFailure{Reason: err.Error()})
	}
	return resp, nil
}

// DiffConfig replaces the provider, and with it all that it manages, when it
// turns to another cluster.
func (p *Provider) DiffConfig(_ context.Context, req plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	diff := req.OldInputs.Diff(req.NewInputs)
	if diff == nil {
		return plugin.DiffConfigResponse{Changes: plugin.DiffNone}, nil
	}
	resp := plugin.DiffConfigResponse{Changes: plugin.DiffSome, ChangedKeys: diff.ChangedKeys()}
	if key, other := otherCluster(req.OldInputs, req.NewInputs); other {
		resp.ReplaceKeys = []resource.PropertyKey{key}
	}
	return resp, nil
}

// otherCluster reports whether two configurations belong to different clusters, and returns the key
// that shows it. The identifiers decide if both have one. A kubeconfig has no identity, so otherCluster
// compares the server's address. An unknown kubeconfig counts as another cluster's.
func otherCluster(before, after resource.PropertyMap) (resource.PropertyKey, bool) {
	const identifier = "clusterIdentifier"
	if before[identifier].IsString() && !after[identifier].IsNull() {
		return identifier, after[identifier].IsString() && !before[identifier].DeepEquals(after[identifier])
	}
	if after["kubeconfig"].IsComputed() {
		return "kubeconfig", true
	}
	server := func(inputs resource.PropertyMap) string {
		c, err := readConfig(inputs)
		if err != nil || inputs["kubeconfig"].IsComputed() {
			return ""
		}
		restConfig, err := c.rest()
		if err != nil {
			return ""
		}
		return restConfig.Host
	}
	from, to := server(before), server(after)
	return "kubeconfig", from != "" && to != "" && from != to
}

// Configure prepares the client. The engine does not call it while any value
// is unknown, as in a preview before the cluster exists.
func (p *Provider) Configure(_ context.Context, req plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	inputs := object.Reveal(req.Inputs)
	if inputs.ContainsUnknowns() {
		return plugin.ConfigureResponse{}, nil
	}
	c, err := readConfig(inputs)
	if err != nil {
		return plugin.ConfigureResponse{}, fmt.Errorf("configuring the Kubernetes provider: %w", err)
	}
	restConfig, err := c.rest()
	if err != nil {
		return plugin.ConfigureResponse{}, fmt.Errorf("configuring the Kubernetes provider: %w", err)
	}
	if plugin := restConfig.ExecProvider; plugin != nil {
		plugin.Command = p.pluginPath(plugin.Command)
	}
	restConfig.UserAgent = "persia-sandbox-kubernetes/" + p.version
	restConfig.WarningHandlerWithContext = cluster.Warnings{Log: &p.log}
	client, err := cluster.New(restConfig, c.namespace)
	if err != nil {
		return plugin.ConfigureResponse{}, fmt.Errorf("configuring the Kubernetes provider: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.config = client, c
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
