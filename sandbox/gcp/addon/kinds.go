package addon

import (
	"context"
	"fmt"
	"time"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// kindsPoll is how often a kind is looked at that is to come or to go.
const kindsPoll = 50 * time.Millisecond

// applyKinds returns when the API server serves the kinds.
func (p ControlPlane) applyKinds(ctx context.Context, definitions []extensionsv1.CustomResourceDefinition) error {
	client, err := p.Extensions()
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

// removeKinds takes the kinds out, and with them all objects of these kinds.
func (p ControlPlane) removeKinds(ctx context.Context, definitions []extensionsv1.CustomResourceDefinition) error {
	client, err := p.Extensions()
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

// awaitKinds waits until every definition is as it should be, where nil is one that
// is gone.
func awaitKinds(ctx context.Context, client extensions.Interface, definitions []extensionsv1.CustomResourceDefinition, done func(*extensionsv1.CustomResourceDefinition) bool) error {
	for _, definition := range definitions {
		err := wait.PollUntilContextCancel(ctx, kindsPoll, true, func(ctx context.Context) (bool, error) {
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
