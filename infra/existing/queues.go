package existing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"persia/config/clusterspec"
)

// What the queues of a stack need of a cluster's Kueue (v0.15.2, pkg/controller/jobs/jobset).
const (
	kueueGroup  = "kueue.x-k8s.io/v1beta2"
	jobSetGroup = "jobset.x-k8s.io/v1alpha2"
	integration = "jobset.x-k8s.io/jobset"
	// workloadPath is the path of a webhook that only Kueue has.
	workloadPath = "/mutate-kueue-x-k8s-io-v1beta2-workload"
)

// CheckQueues asks a cluster for a Kueue that admits JobSets. Without one, jobs would start at once, or
// never.
func CheckQueues(ctx context.Context, cluster clusterspec.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := connect(*cluster.Existing)
	if err != nil {
		return unknown(cluster, err)
	}
	for _, needed := range []struct{ group, program string }{{kueueGroup, "Kueue 0.15"}, {jobSetGroup, "JobSet 0.10"}} {
		var ignored map[string]any
		err := c.get(ctx, "/apis/"+needed.group, &ignored)
		if errors.Is(err, errNotFound) {
			return refusedQueues(cluster, "does not serve %s; install %s or later in it, or remove existing", needed.group, needed.program)
		}
		if err != nil {
			return unknown(cluster, err)
		}
	}
	frameworks, err := c.frameworks(ctx)
	if err != nil {
		return unknown(cluster, err)
	}
	if !slices.Contains(frameworks, integration) {
		return refusedQueues(cluster, "has a Kueue that does not admit JobSets; add %s to integrations.frameworks in its configuration, and restart it", integration)
	}
	return nil
}

func refusedQueues(cluster clusterspec.Cluster, format string, arguments ...any) error {
	return fmt.Errorf("persia:queue.existing: the cluster %s "+format, append([]any{cluster.Name}, arguments...)...)
}

// frameworks returns the kinds of jobs that the cluster's Kueue admits, by its configuration.
func (c *client) frameworks(ctx context.Context) ([]string, error) {
	var webhooks admissionv1.MutatingWebhookConfigurationList
	if err := c.get(ctx, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", &webhooks); err != nil {
		return nil, err
	}
	namespace := namespaceOfKueue(webhooks)
	if namespace == "" {
		return nil, errors.New("no webhook of Kueue is there")
	}
	var maps corev1.ConfigMapList
	if err := c.get(ctx, "/api/v1/namespaces/"+namespace+"/configmaps", &maps); err != nil {
		return nil, err
	}
	for _, configMap := range maps.Items {
		for _, text := range configMap.Data {
			var configuration struct {
				APIVersion   string `json:"apiVersion"`
				Integrations struct {
					Frameworks []string `json:"frameworks"`
				} `json:"integrations"`
			}
			if yaml.Unmarshal([]byte(text), &configuration) == nil && strings.HasPrefix(configuration.APIVersion, "config.kueue.x-k8s.io/") {
				return configuration.Integrations.Frameworks, nil
			}
		}
	}
	return nil, fmt.Errorf("the namespace %s has no configuration of Kueue", namespace)
}

func namespaceOfKueue(list admissionv1.MutatingWebhookConfigurationList) string {
	for _, configuration := range list.Items {
		for _, webhook := range configuration.Webhooks {
			service := webhook.ClientConfig.Service
			if service != nil && service.Path != nil && *service.Path == workloadPath {
				return service.Namespace
			}
		}
	}
	return ""
}
