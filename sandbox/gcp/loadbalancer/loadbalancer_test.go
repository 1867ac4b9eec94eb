package loadbalancer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestServiceAddress(t *testing.T) {
	given := corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "203.0.113.1"}}}}
	cases := map[string]struct {
		spec   corev1.ServiceSpec
		status corev1.ServiceStatus
		want   string
	}{
		"a load balancer":                     {corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}, corev1.ServiceStatus{}, address},
		"a load balancer at a chosen address": {corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "203.0.113.8"}, corev1.ServiceStatus{}, "203.0.113.8"},
		"a load balancer that has an address": {corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}, given, "203.0.113.1"},
		"a service that is not load balanced": {corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}, corev1.ServiceStatus{}, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n"}, Spec: test.spec, Status: test.status}
			client := fake.NewClientset(service)
			require.NoError(t, giveAddress(t.Context(), client, service))
			found, err := client.CoreV1().Services("n").Get(t.Context(), "s", metav1.GetOptions{})
			require.NoError(t, err)
			got := ""
			for _, ingress := range found.Status.LoadBalancer.Ingress {
				got += ingress.IP
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestIngressAddress(t *testing.T) {
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "i", Namespace: "n"}}
	client := fake.NewClientset(ingress)
	require.NoError(t, giveAddress(t.Context(), client, ingress))
	found, err := client.NetworkingV1().Ingresses("n").Get(t.Context(), "i", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, found.Status.LoadBalancer.Ingress, 1)
	assert.Equal(t, address, found.Status.LoadBalancer.Ingress[0].IP)
}
