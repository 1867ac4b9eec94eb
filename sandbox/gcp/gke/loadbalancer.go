package gke

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// address is reserved for documentation (RFC 5737).
const address = "198.51.100.10"

// statusOf returns the status of an object with an address.
func statusOf(ip string) []byte {
	return fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, ip)
}

// GiveAddresses gives Services of type LoadBalancer and Ingresses their address until ctx ends, as
// GKE's cloud controller does. Nothing listens at the address.
func GiveAddresses(ctx context.Context, config *rest.Config, logger *slog.Logger) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("load balancers: %w", err)
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := giveAddresses(ctx, client); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			logger.Warn("load balancer", "error", err)
		}
	}, time.Second)
	return nil
}

// giveAddresses writes the status of the objects that wait for an address.
func giveAddresses(ctx context.Context, client kubernetes.Interface) error {
	services, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, service := range services.Items {
		if service.Spec.Type == corev1.ServiceTypeLoadBalancer && len(service.Status.LoadBalancer.Ingress) == 0 {
			status := statusOf(cmp.Or(service.Spec.LoadBalancerIP, address))
			_, err := client.CoreV1().Services(service.Namespace).
				Patch(ctx, service.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
		}
	}
	ingresses, err := client.NetworkingV1().Ingresses(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, ingress := range ingresses.Items {
		if len(ingress.Status.LoadBalancer.Ingress) == 0 {
			_, err := client.NetworkingV1().Ingresses(ingress.Namespace).
				Patch(ctx, ingress.Name, types.MergePatchType, statusOf(address), metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
		}
	}
	return nil
}
