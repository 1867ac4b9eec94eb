package tests

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
)

const admissionPolicyToken = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"

// TestAdmitsItsOwnImages: each pod of each stack file is from a repository that the
// policy lists, and comes after the policies. What they refuse is asked of an API server
// in the sandbox.
func TestAdmitsItsOwnImages(t *testing.T) {
	for _, path := range stackFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, err := deployIn(t, filepath.Join(root, filepath.Dir(path)), readStackFile(t, path))
			require.NoError(t, err)
			policy := object[admissionv1.ValidatingAdmissionPolicy](t, r.one(t, admissionPolicyToken, "persia-images"))
			list := regexp.MustCompile(`\["[^]]*"\]`).FindString(policy.Spec.Validations[0].Expression)
			var repositories []string
			require.NoError(t, json.Unmarshal([]byte(list), &repositories))
			concerned := policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values
			found := 0
			check := func(namespace string, registration registration, pod corev1.PodSpec) {
				if !slices.Contains(concerned, namespace) {
					return
				}
				for _, container := range pod.Containers {
					found++
					name := container.Image
					if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
						name = name[:i]
					}
					assert.Contains(t, repositories, name, registration.urn)
				}
				if registration.Name == "nats-operator" {
					return // its servers come after the policies
				}
				for _, policy := range []string{"persia-pods", "persia-images"} {
					binding := r.one(t, admissionPolicyToken+"Binding", policy)
					assert.Contains(t, r.before(registration), binding.urn, registration.urn)
				}
			}
			for _, registration := range r.some(statefulSetToken) {
				set := object[appsv1.StatefulSet](t, registration)
				check(set.Namespace, registration, set.Spec.Template.Spec)
			}
			for _, registration := range r.some(deploymentToken) {
				deployment := object[appsv1.Deployment](t, registration)
				check(deployment.Namespace, registration, deployment.Spec.Template.Spec)
			}
			assert.NotZero(t, found)
		})
	}
}
