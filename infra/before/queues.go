package before

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"persia/config"
)

// What the queues of a stack need of a cluster's Kueue (v0.16.1, pkg/controller/jobs/jobset).
const (
	integration = "jobset.x-k8s.io/jobset"
	// workloadPath is the path of a webhook that only Kueue has.
	workloadPath = "/mutate-kueue-x-k8s-io-v1beta2-workload"
)

// CheckQueues asks a cluster for a Kueue that admits JobSets. Without one, jobs would start at once, or never.
func CheckQueues(ctx context.Context, cluster config.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := connect(*cluster.Existing)
	if err != nil {
		return unknown(cluster, err)
	}
	configuration, err := kueueConfigurationOf(ctx, c)
	if err != nil {
		return unknown(cluster, err)
	}
	if fault := configuration.fault(); fault != "" {
		return fmt.Errorf("persia:queue.existing: the cluster %s has a Kueue that %s in its configuration, and restart it", cluster.Name, fault)
	}
	return nil
}

// kueueConfiguration has the fields of config.kueue.x-k8s.io/v1beta1 and v1beta2 that queues need.
type kueueConfiguration struct {
	APIVersion   string `json:"apiVersion"`
	Integrations struct {
		Frameworks []string `json:"frameworks"`
	} `json:"integrations"`
	WaitForPodsReady *struct {
		Enable            *bool `json:"enable"` // of v1beta1
		RequeuingStrategy struct {
			BackoffLimitCount *int `json:"backoffLimitCount"`
		} `json:"requeuingStrategy"`
	} `json:"waitForPodsReady"`
}

// fault returns what the configuration does to jobs that it should not, with the remedy, or "".
func (c kueueConfiguration) fault() string {
	wait := c.WaitForPodsReady
	switch {
	case !slices.Contains(c.Integrations.Frameworks, integration):
		return "does not admit JobSets; add " + integration + " to integrations.frameworks"
	case wait == nil || wait.Enable != nil && !*wait.Enable:
		return "never stops an admitted job whose replicas do not all run, which holds its nodes without end; write waitForPodsReady"
	case wait.RequeuingStrategy.BackoffLimitCount != nil:
		return "gives up a job that it has stopped several times, until a person activates it; " +
			"remove waitForPodsReady.requeuingStrategy.backoffLimitCount"
	default:
		return ""
	}
}

// kueueConfigurationOf returns the configuration of a cluster's Kueue.
func kueueConfigurationOf(ctx context.Context, c rest.Interface) (kueueConfiguration, error) {
	var webhooks admissionv1.MutatingWebhookConfigurationList
	if err := get(ctx, c, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", &webhooks); err != nil {
		return kueueConfiguration{}, err
	}
	namespace := namespaceOfKueue(webhooks)
	if namespace == "" {
		return kueueConfiguration{}, errors.New("no webhook of Kueue is there")
	}
	var maps corev1.ConfigMapList
	if err := get(ctx, c, "/api/v1/namespaces/"+namespace+"/configmaps", &maps); err != nil {
		return kueueConfiguration{}, err
	}
	for _, configMap := range maps.Items {
		for _, text := range configMap.Data {
			var configuration kueueConfiguration
			if yaml.Unmarshal([]byte(text), &configuration) == nil && strings.HasPrefix(configuration.APIVersion, "config.kueue.x-k8s.io/") {
				return configuration, nil
			}
		}
	}
	return kueueConfiguration{}, fmt.Errorf("the namespace %s has no configuration of Kueue", namespace)
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
