package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	// cleanupPoll is how often definitions are looked at whose cleanup may have stopped.
	cleanupPoll = time.Second
	// retriedAnnotation is on definitions whose cleanup was asked for again.
	retriedAnnotation = "sandbox/cleanup-retried"
)

// RetryCleanups keeps deletions of custom resource definitions from hanging, until ctx ends.
//
// The API server first deletes a definition's objects. If it cannot list them, because the cache of
// an unused kind is still opening, it writes that into the definition's status and tries again. If it
// has not yet seen its own write, it takes the conflict for another client's change and waits for
// that change's event, but then ignores the event as its own. It goes on at the informer's resync, up
// to five minutes later (crd_finalizer.go of apiextensions-apiserver 0.34). Any other change of the
// definition wakes it.
func RetryCleanups(ctx context.Context, config *rest.Config, logger *slog.Logger) error {
	client, err := extensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("retry cleanups: %w", err)
	}
	// Definitions are large, and change seldom.
	watched := informers.NewSharedInformerFactory(client, 0)
	definitions := watched.Apiextensions().V1().CustomResourceDefinitions().Lister()
	watched.Start(ctx.Done())
	watched.WaitForCacheSync(ctx.Done())
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		list, err := definitions.List(labels.Everything())
		if err == nil {
			err = retryCleanups(ctx, client, list)
		}
		if err != nil && ctx.Err() == nil {
			logger.Warn("retry cleanups", "error", err)
		}
	}, cleanupPoll)
	return nil
}

func retryCleanups(ctx context.Context, client extensions.Interface, definitions []*extensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		if !cleanupFailed(definition) {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, retriedAnnotation, definition.ResourceVersion)
		_, err := client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, definition.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func cleanupFailed(definition *extensionsv1.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == extensionsv1.Terminating {
			return condition.Reason == "InstanceDeletionFailed"
		}
	}
	return false
}
