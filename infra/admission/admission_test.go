package admission_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestAdmitsItsOwnImages: each pod of each stack file is from a repository that the policy lists, and comes after the
// policies. What they refuse is asked of an API server in the sandbox.
func TestAdmitsItsOwnImages(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := programtest.DeployFile(t, path)
			policy := testkit.Object[admissionv1.ValidatingAdmissionPolicy](t, r.One(t, testkit.AdmissionPolicy, "persia-images"))
			list := regexp.MustCompile(`\["[^]]*"\]`).FindString(policy.Spec.Validations[0].Expression)
			var repositories []string
			require.NoError(t, json.Unmarshal([]byte(list), &repositories))
			concerned := policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values
			found := 0
			check := func(namespace string, registration testkit.Resource, pod corev1.PodSpec) {
				if !slices.Contains(concerned, namespace) {
					assert.Contains(t, []string{"kube-system", "pedl", "pedl-agents"}, namespace, registration.URN)
					return
				}
				for _, container := range pod.Containers {
					found++
					name := container.Image
					if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
						name = name[:i]
					}
					assert.Contains(t, repositories, name, registration.URN)
				}
				if registration.Name == "nats-operator" {
					return // its servers come after the policies
				}
				for _, policy := range []string{"persia-pods", "persia-images"} {
					binding := r.One(t, testkit.AdmissionPolicy+"Binding", policy)
					assert.Contains(t, r.Before(registration), binding.URN, registration.URN)
				}
			}
			for _, registration := range r.Some(testkit.StatefulSet) {
				set := testkit.Object[appsv1.StatefulSet](t, registration)
				check(set.Namespace, registration, set.Spec.Template.Spec)
			}
			for _, registration := range r.Some(testkit.Deployment) {
				deployment := testkit.Object[appsv1.Deployment](t, registration)
				check(deployment.Namespace, registration, deployment.Spec.Template.Spec)
			}
			assert.NotZero(t, found)
		})
	}
}

// TestAdmitsImagesOfGKE checks the patterns of the policy, which CEL matches as Go does.
func TestAdmitsImagesOfGKE(t *testing.T) {
	r := programtest.DeployFile(t, "Pulumi.dev.yaml")
	policy := testkit.Object[admissionv1.ValidatingAdmissionPolicy](t, r.One(t, testkit.AdmissionPolicy, "persia-images"))
	patterns := regexp.MustCompile(`matches\('([^']*)'\)`).FindAllStringSubmatch(policy.Spec.Validations[0].Expression, -1)
	require.NotEmpty(t, patterns)
	for name, test := range map[string]struct {
		image    string
		admitted bool
	}{
		"Container Registry":               {"gke.gcr.io/gcs-fuse-csi-driver-sidecar-mounter:v1", true},
		"Artifact Registry in a region":    {"us-central1-artifactregistry.gcr.io/gke-release/gke-release/gcs-fuse-csi-driver-sidecar-mounter:v1.24.3-gke.2", true},
		"another project of that registry": {"us-central1-artifactregistry.gcr.io/gke-release-2/a:v1", false},
		"host that begins like GKE's":      {"gke.gcr.io.example.com/a:v1", false},
		"registry that begins like GKE's":  {"us-central1-artifactregistry.gcr.io.example.com/gke-release/a:v1", false},
		"GKE's name in a path":             {"example.com/us-central1-artifactregistry.gcr.io/gke-release/a:v1", false},
		"a tag":                            {"busybox:1.36", false},
	} {
		t.Run(name, func(t *testing.T) {
			admitted := slices.ContainsFunc(patterns, func(pattern []string) bool {
				return regexp.MustCompile(pattern[1]).MatchString(test.image)
			})
			assert.Equal(t, test.admitted, admitted, test.image)
		})
	}
}
