package persia

import (
	_ "embed"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"persia/capacity"
	"persia/config"
	"persia/kube"
	"persia/workload/persia/persiav1"
)

// OperatorNamespace holds PERSIA's own operator, apart from the pods that it makes.
const OperatorNamespace = "persia-operator"

// OperatorArgs describes the operator.
type OperatorArgs struct {
	// Image has the operator. It is always the same one.
	Image string
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the operator runs.
	Placement kube.Placement
	// Adopter registers objects that Kubernetes has created already.
	Adopter pulumi.ProviderResource
	// JobNamespace is where PersiaJobs may have pods. It is among Needs.
	JobNamespace string
	// Needs come before everything of the operator.
	Needs []pulumi.CustomResource
}

//go:embed operator.yaml
var operatorManifest string

// NewOperator registers the operator with its namespace, identity and kind.
func NewOperator(r *kube.Registrar, name string, args OperatorArgs) []pulumi.CustomResource {
	operator, err := kube.ReadOperator(operatorManifest, struct {
		Image, JobNamespace string
		Requests            corev1.ResourceList
	}{args.Images.Reference(args.Image), args.JobNamespace, kube.Requests(capacity.PERSIAOperator)})
	r.Fail(err)
	crd, err := persiaJobs()
	r.Fail(err)
	operator.Kinds, operator.Placement = []kube.Kind{{Resource: name, Definition: crd}}, args.Placement
	objects := r.Component("persia:operator:Operator", name)
	return kube.Needs(
		objects.AddOperator(name, operator, args.Needs),
		// Kubernetes makes the account with the namespace, and deletes it with that.
		objects.Add(name+"-pods", podAccount(args.JobNamespace), args.Needs, pulumi.Provider(args.Adopter), pulumi.RetainOnDelete(true)),
	)
}

// podAccount takes the token from the pods of jobs: the operator names no account for
// them, and so they have this one.
func podAccount(namespace string) *corev1.ServiceAccount {
	no := false
	return &corev1.ServiceAccount{
		ObjectMeta:                   kube.Meta(namespace, "default", nil),
		AutomountServiceAccountToken: &no,
	}
}

//go:generate go tool controller-gen crd:maxDescLen=0 paths=./persiav1 output:crd:dir=.

// persiaJobsText is the CustomResourceDefinition that controller-gen generates from the Go types.
//
//go:embed persia.com_persiajobs.yaml
var persiaJobsText []byte

func persiaJobs() (*extensionsv1.CustomResourceDefinition, error) {
	crd := &extensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(persiaJobsText, crd); err != nil {
		return nil, fmt.Errorf("the definition of %s: %w", persiav1.Kind, err)
	}
	for i := range crd.Spec.Versions {
		quantitiesAreText(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
	return crd, nil
}

// quantitiesAreText no longer lets a quantity be a number. The operator reads
// all jobs as one list, and one number in it, like cpu: 8, would keep it from ever
// reading any.
func quantitiesAreText(schema *extensionsv1.JSONSchemaProps) {
	if schema.XIntOrString {
		schema.XIntOrString, schema.AnyOf, schema.Type = false, nil, "string"
	}
	for name, property := range schema.Properties {
		quantitiesAreText(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		quantitiesAreText(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		quantitiesAreText(schema.AdditionalProperties.Schema)
	}
}
