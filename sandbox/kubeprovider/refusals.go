package kubeprovider

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// refusals are the calls of the engine that this provider does not support.
type refusals struct{ plugin.UnimplementedProvider }

// GetMapping says that nothing converts to this provider.
func (refusals) GetMapping(context.Context, plugin.GetMappingRequest) (plugin.GetMappingResponse, error) {
	return plugin.GetMappingResponse{}, nil
}

// GetMappings says that nothing converts to this provider.
func (refusals) GetMappings(context.Context, plugin.GetMappingsRequest) (plugin.GetMappingsResponse, error) {
	return plugin.GetMappingsResponse{Keys: []string{}}, nil
}

// Parameterize is refused: there is one kubernetes package.
func (refusals) Parameterize(
	context.Context, plugin.ParameterizeRequest,
) (plugin.ParameterizeResponse, error) {
	return plugin.ParameterizeResponse{}, errors.New("the sandbox's Kubernetes provider takes no parameters")
}

// Construct is refused: there are no components here.
func (refusals) Construct(_ context.Context, req plugin.ConstructRequest) (plugin.ConstructResponse, error) {
	return plugin.ConstructResponse{}, unsupported("component", string(req.Type))
}

// Invoke is refused: there are no functions here.
func (refusals) Invoke(_ context.Context, req plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	return plugin.InvokeResponse{}, unsupported("function", string(req.Tok))
}

// Call is refused: there are no methods here.
func (refusals) Call(_ context.Context, req plugin.CallRequest) (plugin.CallResponse, error) {
	return plugin.CallResponse{}, unsupported("method", string(req.Tok))
}

// List is refused.
func (refusals) List(_ context.Context, req plugin.ListRequest) (*plugin.ListStream, error) {
	return nil, unsupported("listing", string(req.Token))
}

func unsupported(what, token string) error {
	return fmt.Errorf("the sandbox's Kubernetes provider has no %s %s; "+
		"it takes Kubernetes objects, one resource each", what, token)
}
