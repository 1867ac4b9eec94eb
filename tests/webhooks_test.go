package tests

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/kube"
)

// undisturbed are the API groups of the program's objects that no webhook on GKE's nodes sees: groups
// of Kubernetes itself, and of the controllers that the program installs.
var undisturbed = []string{
	"", "apps", "batch", "policy", "networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io",
	"apiextensions.k8s.io", "admissionregistration.k8s.io",
	"nats.io", "persia.com", "jobset.x-k8s.io", "kueue.x-k8s.io",
}

// TestWebhooksOfGKE checks that each kind of object is decided: either no webhook on the nodes sees it,
// or it waits for an available Deployment of the stack.
func TestWebhooksOfGKE(t *testing.T) {
	seen := map[string]bool{}
	for _, stack := range programtest.StackFiles(t) {
		recorder := programtest.DeployFile(t, stack)
		for _, registered := range recorder.Resources {
			kind, isObject := strings.CutPrefix(registered.TypeToken, "kubernetes:")
			if !isObject {
				continue
			}
			group, _, _ := strings.Cut(kind, "/")
			if group == "core" {
				group = ""
			}
			webhook, onNodes := kube.WebhookOnNodes(group)
			if !onNodes {
				assert.Contains(t, undisturbed, group, "%s: find out which webhooks of GKE see %s, and add it to kube.GKEWebhooks or here", stack, kind)
				continue
			}
			seen[webhook.Name] = true
			before := recorder.Before(registered)
			assert.True(t, slices.ContainsFunc(recorder.Some(testkit.Deployment), func(d testkit.Resource) bool {
				return before[d.URN] && testkit.Found(t, d, `metadata.annotations["pulumi.com/skipAwait"]`) == nil
			}), "%s: %s passes %s, and waits for no Deployment", stack, registered.URN, webhook.Name)
		}
	}
	for _, webhook := range kube.GKEWebhooks() {
		assert.Equal(t, webhook.OnNodes, seen[webhook.Name], "%s: no stack has an object that passes it", webhook.Name)
	}
}
