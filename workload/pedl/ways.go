package pedl

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/config"
)

func masterService(service config.PEDLService) *corev1.Service {
	object := &corev1.Service{
		ObjectMeta: meta(NamespaceName, masterName, masterPart),
		Spec: corev1.ServiceSpec{
			Type:                     service.Type,
			ClusterIP:                service.ClusterIP,
			ExternalIPs:              service.ExternalIPs,
			LoadBalancerIP:           service.LoadBalancerIP,
			LoadBalancerSourceRanges: service.LoadBalancerSourceRanges,
			Selector:                 selector(masterPart),
			Ports: []corev1.ServicePort{{
				Name: "http", Port: int32(service.Port), TargetPort: intstr.FromString("http"), NodePort: int32(service.NodePort),
			}},
		},
	}
	object.Annotations = service.Annotations
	return object
}

// masterIngress leads each host to the master, or every request if none is named.
func masterIngress(pedl config.PEDL) *networkingv1.Ingress {
	hosts := pedl.Ingress.Hosts
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	prefix := networkingv1.PathTypePrefix
	object := &networkingv1.Ingress{
		ObjectMeta: meta(NamespaceName, masterName, masterPart),
		Spec:       networkingv1.IngressSpec{TLS: pedl.Ingress.TLS},
	}
	object.Annotations = pedl.Ingress.Annotations
	for _, host := range hosts {
		object.Spec.Rules = append(object.Spec.Rules, networkingv1.IngressRule{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &prefix,
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: masterName, Port: networkingv1.ServiceBackendPort{Number: int32(pedl.Service.Port)},
					}},
				}},
			}},
		})
	}
	return object
}
