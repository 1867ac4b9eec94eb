package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Base answers what the engine asks every provider.
type Base struct {
	plugin.UnimplementedProvider
	Log Logger
	// Name and Version are the package's, by which the engine knows the provider.
	Name, Version string
}

// Attach directs messages to the engine at address.
func (b *Base) Attach(address string) error { return b.Log.Attach(address) }

// Close ends the connection to the engine.
func (b *Base) Close() error { return b.Log.Close() }

// Handshake negotiates the protocol with the engine. Secrets arrive as plain values: without
// AcceptSecrets, the engine itself makes secret what is secret in the inputs.
func (b *Base) Handshake(context.Context, plugin.ProviderHandshakeRequest) (*plugin.ProviderHandshakeResponse, error) {
	return &plugin.ProviderHandshakeResponse{}, nil
}

// GetPluginInfo gives the version of the provider.
func (b *Base) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	version, err := semver.ParseTolerant(b.Version)
	if err != nil {
		return plugin.PluginInfo{}, fmt.Errorf("version %q of provider %s: %w", b.Version, b.Name, err)
	}
	return plugin.PluginInfo{Version: &version}, nil
}

// GetSchema gives the name and version of the package, and no resources: the program has its SDK.
func (b *Base) GetSchema(context.Context, plugin.GetSchemaRequest) (plugin.GetSchemaResponse, error) {
	schema, err := json.Marshal(map[string]string{"name": b.Name, "version": b.Version})
	return plugin.GetSchemaResponse{Schema: schema}, err
}
