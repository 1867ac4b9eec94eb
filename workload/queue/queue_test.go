package queue_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

const (
	crd         = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
	mutating    = "kubernetes:admissionregistration.k8s.io/v1:MutatingWebhookConfiguration"
	validating  = "kubernetes:admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration"
	clusterRole = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
)

// TestProducts checks that webhooks fail closed in the namespace of jobs only, and that what a product
// may write in the whole cluster is its own.
func TestProducts(t *testing.T) {
	r := programtest.DeployFile(t, "examples/Pulumi.queues.yaml")
	for _, configuration := range append(r.All(t, mutating), r.All(t, validating)...) {
		for _, webhook := range testkit.At(t, configuration, "webhooks").([]any) {
			fields := webhook.(map[string]any)
			assert.Equal(t, map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "persia"}}, fields["namespaceSelector"], fields["name"])
			rule := fields["rules"].([]any)[0].(map[string]any)
			assert.Contains(t, []any{"kueue.x-k8s.io", "jobset.x-k8s.io"}, rule["apiGroups"].([]any)[0])
		}
	}
	for _, role := range r.All(t, clusterRole) {
		for _, rule := range testkit.Object[rbacv1.ClusterRole](t, role).Rules {
			own := strings.HasSuffix(rule.APIGroups[0], ".x-k8s.io") || rule.APIGroups[0] == "nats.io" || len(rule.ResourceNames) > 0 || rule.Resources[0] == "events"
			assert.True(t, own || !strings.Contains(strings.Join(rule.Verbs, ","), "update"), "%v", rule)
			assert.NotContains(t, rule.Resources, "secrets")
		}
	}
	for _, definition := range r.All(t, crd) {
		versions := testkit.Object[extensionsv1.CustomResourceDefinition](t, definition).Spec.Versions
		require.Len(t, versions, 1, "a Kueue that does not run converts no objects")
		assert.True(t, versions[0].Served && versions[0].Storage)
	}
}

// TestVersions: an image, and the definitions that the program registers, are of the version that the sandbox runs.
func TestVersions(t *testing.T) {
	for product, tag := range map[string]string{"jobset": config.ImageJobSet.Tag, "kueue": config.ImageKueue.Tag} {
		modules := testkit.Read(t, "../../sandbox/toolchain/"+product+"/go.mod")
		assert.Regexp(t, `sigs\.k8s\.io/`+product+" "+regexp.QuoteMeta(tag)+`( |\n)`, modules)
	}
}

func TestPython(t *testing.T) {
	output, err := exec.Command("python3", "-B", "-m", "unittest", "test_provisioner").CombinedOutput()
	require.NoError(t, err, "%s", output)
}
