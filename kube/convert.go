package kube

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/mapper"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sdkmeta "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
)

// spec converts value, a pointer to a struct of k8s.io/api, to the SDK's output
// for its own struct of the same shape. The two agree in their field names,
// since the SDK is generated from Kubernetes' schema; a field that the SDK does
// not have is a mistake in this program, so spec panics.
func spec[Plain any, Output pulumi.Output](value any) Output {
	return pulumi.ToOutput(plain[Plain](value)).(Output)
}

func plain[Plain any](value any) Plain {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		panic(fmt.Errorf("kube: %T: %w", value, err))
	}
	prune(fields)
	var converted Plain
	opts := &mapper.Opts{IgnoreMissing: true}
	if err := mapper.New(opts).Decode(fields, &converted); err != nil {
		panic(fmt.Errorf("kube: %T to %T: %w", value, converted, err))
	}
	return converted
}

// prune removes the nulls that Kubernetes' types print for a time that was never
// set.
func prune(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			prune(value)
		case []any:
			for _, element := range value {
				if object, ok := element.(map[string]any); ok {
					prune(object)
				}
			}
		}
	}
}

func metadata(meta metav1.ObjectMeta) sdkmeta.ObjectMetaOutput {
	return spec[sdkmeta.ObjectMeta, sdkmeta.ObjectMetaOutput](&meta)
}
