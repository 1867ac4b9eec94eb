package autoscaler

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/sandbox/gcp/gke"
)

// StockName is the name of a ConfigMap in kube-system that has a [Stock], as JSON, for the names
// of pools. Without one, there are machines enough.
const StockName = "stock"

// Stock describes the machines that Google Cloud can provide for a pool.
type Stock struct {
	// Machines is how many nodes the pool can have now.
	Machines *int `json:"machines,omitempty"`
	// Broken machines become nodes that take no pods.
	Broken bool `json:"broken,omitempty"`
}

func (a *autoscaler) readStock(ctx context.Context) (map[string]Stock, error) {
	configMap, err := a.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, StockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stocks := map[string]Stock{}
	for pool, text := range configMap.Data {
		var stock Stock
		if err := json.Unmarshal([]byte(text), &stock); err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %s: %w", StockName, pool, err)
		}
		stocks[pool] = stock
	}
	return stocks, nil
}

// limit returns how many nodes a pool can have now.
func (p *plan) limit(pool gke.Pool) int {
	if machines := p.stocks[pool.Name()].Machines; machines != nil {
		return min(*machines, pool.Max())
	}
	return pool.Max()
}
