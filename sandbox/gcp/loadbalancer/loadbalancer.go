// Package loadbalancer gives Services of type LoadBalancer and Ingresses their
// address, as GKE's cloud controller does. Nothing listens at the address.
package loadbalancer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// address is reserved for documentation (RFC 5737).
const address = "198.51.100.10"

// resync has an object looked at again whose status could not be written.
const resync = 10 * time.Second

// Run gives addresses until ctx ends.
func Run(ctx context.Context, config *rest.Config, logger *slog.Logger) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("load balancers: %w", err)
	}
	give := func(object any) {
		if err := giveAddress(ctx, client, object); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			logger.Warn("load balancer", "error", err)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: give, UpdateFunc: func(_, object any) { give(object) }}
	factory := informers.NewSharedInformerFactory(client, resync)
	for _, informer := range []cache.SharedInformer{
		factory.Core().V1().Services().Informer(),
		factory.Networking().V1().Ingresses().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("load balancers: %w", err)
		}
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// giveAddress writes the status of an object that waits for an address.
func giveAddress(ctx context.Context, client kubernetes.Interface, object any) error {
	switch object := object.(type) {
	case *corev1.Service:
		if object.Spec.Type != corev1.ServiceTypeLoadBalancer || len(object.Status.LoadBalancer.Ingress) > 0 {
			return nil
		}
		wanted := address
		if object.Spec.LoadBalancerIP != "" {
			wanted = object.Spec.LoadBalancerIP
		}
		_, err := client.CoreV1().Services(object.Namespace).
			Patch(ctx, object.Name, types.MergePatchType, statusOf(wanted), metav1.PatchOptions{}, "status")
		return err
	case *networkingv1.Ingress:
		if len(object.Status.LoadBalancer.Ingress) > 0 {
			return nil
		}
		_, err := client.NetworkingV1().Ingresses(object.Namespace).
			Patch(ctx, object.Name, types.MergePatchType, statusOf(address), metav1.PatchOptions{}, "status")
		return err
	}
	return nil
}

// statusOf returns the same for both kinds.
func statusOf(ip string) []byte {
	text, err := json.Marshal(map[string]any{
		"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": ip}}}},
	})
	if err != nil {
		panic(err) // texts can be written
	}
	return text
}
