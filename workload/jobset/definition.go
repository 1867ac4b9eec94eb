package jobset

import (
	_ "embed"
	"fmt"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"persia/kube"
)

//go:generate sh -c "cd ../../sandbox/toolchain/jobset && go run ./definition >../../../workload/jobset/jobset.x-k8s.io_jobsets.yaml"

// definitionText is JobSet's own, without descriptions: Pulumi keeps it twice in the state of
// a stack, and descriptions are four fifths of it.
//
//go:embed jobset.x-k8s.io_jobsets.yaml
var definitionText []byte

func definition() (*extensionsv1.CustomResourceDefinition, error) {
	crd := &extensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definitionText, crd); err != nil {
		return nil, fmt.Errorf("the definition of %s: %w", Kind, err)
	}
	crd.Labels = kube.Labels(controllerName, controllerName)
	return crd, nil
}
