package addon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/GoogleCloudPlatform/prometheus-engine/manifests"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"

	"persia/sandbox/gcp/property"
)

// prometheusPoll is how often a kind is looked at that is to come or to go.
const prometheusPoll = 50 * time.Millisecond

// hasPrometheus reports whether a cluster has Managed Service for Prometheus. One of
// which nothing is said has it.
func hasPrometheus(inputs resource.PropertyMap) bool {
	return property.Truth(property.Object(property.Object(inputs, "monitoringConfig"), "managedPrometheus"), "enabled", true)
}

// applyPrometheus puts the kinds of Managed Service for Prometheus into the control
// plane. Nothing in the sandbox acts on them. They stay when the service is turned
// off, with the objects that the program has yet to delete.
func (p ControlPlane) applyPrometheus(ctx context.Context, inputs resource.PropertyMap) error {
	if !hasPrometheus(inputs) {
		return nil
	}
	client, err := p.Extensions()
	if err != nil {
		return err
	}
	definitions, err := prometheusKinds()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		_, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, &definition, metav1.CreateOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsAlreadyExists); err != nil {
			return err
		}
	}
	return awaitKinds(ctx, client, definitions, isEstablished)
}

// removePrometheus takes the kinds out, and with them all objects of these kinds.
func (p ControlPlane) removePrometheus(ctx context.Context) error {
	client, err := p.Extensions()
	if err != nil {
		return err
	}
	definitions, err := prometheusKinds()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		err := client.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, definition.Name, metav1.DeleteOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	return awaitKinds(ctx, client, definitions, func(live *extensionsv1.CustomResourceDefinition) bool { return live == nil })
}

// prometheusKinds are Google's own definitions of PodMonitoring and the kinds around
// it, as GKE installs them.
func prometheusKinds() ([]extensionsv1.CustomResourceDefinition, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests.CRDManifest), 4096)
	var definitions []extensionsv1.CustomResourceDefinition
	for {
		var definition extensionsv1.CustomResourceDefinition
		err := decoder.Decode(&definition)
		if errors.Is(err, io.EOF) {
			return definitions, nil
		}
		if err != nil {
			return nil, fmt.Errorf("kinds of Managed Service for Prometheus: %w", err)
		}
		definitions = append(definitions, definition)
	}
}

// awaitKinds waits until every definition is as it should be, where nil is one that
// is gone.
func awaitKinds(ctx context.Context, client extensions.Interface, definitions []extensionsv1.CustomResourceDefinition, done func(*extensionsv1.CustomResourceDefinition) bool) error {
	for _, definition := range definitions {
		err := wait.PollUntilContextCancel(ctx, prometheusPoll, true, func(ctx context.Context) (bool, error) {
			live, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, definition.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				live, err = nil, nil
			}
			return err == nil && done(live), err
		})
		if err != nil {
			return fmt.Errorf("await %s: %w", definition.Name, err)
		}
	}
	return nil
}

func isEstablished(live *extensionsv1.CustomResourceDefinition) bool {
	if live == nil {
		return false
	}
	for _, condition := range live.Status.Conditions {
		if condition.Type == extensionsv1.Established {
			return condition.Status == extensionsv1.ConditionTrue
		}
	}
	return false
}
