package before

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"persia/config"
)

var errNotFound = errors.New("not found")

// client reads from an API server.
type client struct {
	http *http.Client
	host string
}

// connect reads the kubeconfig that the provider reads, and by the same rules.
func connect(existing config.ExistingCluster) (*client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = existing.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: existing.Context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &client{http: c, host: url.String()}, nil
}

// get reads the object at a path.
func (c *client) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return json.NewDecoder(response.Body).Decode(into)
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, errNotFound)
	default:
		return fmt.Errorf("%s: %s", path, response.Status)
	}
}
