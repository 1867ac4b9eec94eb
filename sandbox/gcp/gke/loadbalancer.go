package gke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp/google"
)

// address is reserved for documentation (RFC 5737).
const address = "198.51.100.10"

// GiveAddresses gives Services of type LoadBalancer and Ingresses their address until ctx ends, as
// GKE's cloud controller does. Nothing listens at the address.
func GiveAddresses(ctx context.Context, config *rest.Config, logger *slog.Logger) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("load balancers: %w", err)
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := errors.Join(
			giveAddresses(ctx, client.Resource(corev1.SchemeGroupVersion.WithResource("services"))),
			giveAddresses(ctx, client.Resource(networkingv1.SchemeGroupVersion.WithResource("ingresses"))))
		if err != nil && ctx.Err() == nil {
			logger.Warn("load balancer", "error", err)
		}
	}, time.Second)
	return nil
}

// giveAddresses writes the status of the objects that wait for an address.
func giveAddresses(ctx context.Context, client dynamic.NamespaceableResourceInterface) error {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		balanced := item.GetKind() == "Ingress" || google.Text(item.Object, "spec.type") == string(corev1.ServiceTypeLoadBalancer)
		if !balanced || len(google.Objects(item.Object, "status.loadBalancer.ingress")) > 0 {
			continue
		}
		ip := cmp.Or(google.Text(item.Object, "spec.loadBalancerIP"), address)
		status := fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, ip)
		_, err := client.Namespace(item.GetNamespace()).Patch(ctx, item.GetName(), types.MergePatchType, status, metav1.PatchOptions{}, "status")
		if utilerrors.FilterOut(err, apierrors.IsNotFound) != nil {
			return err
		}
	}
	return nil
}
