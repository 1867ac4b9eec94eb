// Package pedl is Determined AI's PEDL next to the training jobs: a master with its database in one namespace, and in
// another the agents, which have the Docker of their nodes start containers that Kubernetes does not see.
//
// Only customers have PEDL's images. The program relies on PEDL's public documents: the master reads a YAML file, and
// every option of an agent is an environment variable with the prefix PEDL_.
package pedl

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/config"
	"persia/kube"
)

const (
	masterName = "pedl-master"
	// masterPort is where the master listens, behind whatever port its service has.
	masterPort       = 8080
	masterSecretName = "pedl-master-config"
	masterConfigFile = "master.yaml"
	masterConfigPath = "/etc/pedl/" + masterConfigFile
)

// Master is the master, up and connected.
type Master struct {
	// Server is the master itself.
	Server pulumi.CustomResource
	// URL is where it is reached inside of the cluster.
	URL string `pulumi:"url"`
	// ClusterIP is the address of its service.
	ClusterIP pulumi.Output
}

// NewMaster registers the master after its namespace and database, and the ways to it.
func NewMaster(r *kube.Registrar, name string, args Args, needs []pulumi.CustomResource) Master {
	master := Master{URL: fmt.Sprintf("http://%s.%s.svc:%d", masterName, NamespaceName, args.PEDL.Service.Port)}
	objects := r.Component("persia:pedl:Master", name)
	objects.Outputs = master
	database := connectionOf(args.PEDL.Postgres)
	policy := kube.Needs(objects.Add(name, masterPolicy(database), needs))
	secret := objects.Add(name+"-config", &corev1.Secret{
		ObjectMeta: meta(NamespaceName, masterSecretName, masterName),
		Data:       map[string][]byte{masterConfigFile: masterConfig(database)},
	}, policy)
	master.Server = objects.AddWith(name, deployment(args), restartedBy(secret), kube.Needs(secret), kube.WorkloadTimeouts())
	service := objects.Add(name, masterService(args.PEDL.Service), policy)
	master.ClusterIP = service.Spec.MapIndex(pulumi.String("clusterIP"))
	if args.PEDL.Ingress.Enabled {
		objects.Add(name, masterIngress(args.PEDL), kube.Needs(service))
	}
	return master
}

func deployment(args Args) *appsv1.Deployment {
	pod := masterPod(args)
	args.Placement.Apply(&pod)
	pod.NodeSelector = maps.Clone(pod.NodeSelector)
	maps.Copy(pod.NodeSelector, args.PEDL.NodeSelector)
	pod.Tolerations = slices.Concat(pod.Tolerations, args.PEDL.Tolerations)
	return &appsv1.Deployment{
		ObjectMeta: meta(NamespaceName, masterName, masterName),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: selector(masterName)},
			// Two masters would both schedule the trials of one database.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: template(masterName, masterName, pod),
		},
	}
}

func masterPod(args Args) corev1.PodSpec {
	const volume = "configuration"
	pedl := args.PEDL
	return corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: pullSecretName}},
		SecurityContext:  &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name:            "master",
			Image:           args.Images.PrivateReference(pedl.MasterImage),
			ImagePullPolicy: pedl.ImagePullPolicy,
			Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: masterPort}},
			Resources:       pedl.Resources,
			ReadinessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}},
			},
			VolumeMounts:    []corev1.VolumeMount{{Name: volume, MountPath: masterConfigPath, SubPath: masterConfigFile, ReadOnly: true}},
			SecurityContext: withoutRights(),
		}},
		Volumes: []corev1.Volume{kube.SecretVolume(volume, masterSecretName)},
	}
}

// withoutRights takes from a container whatever its image does not need to run as the user that it chooses.
func withoutRights() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func masterService(settings config.PEDLService) *corev1.Service {
	object := service(masterName, masterName, corev1.ServiceSpec{
		Type:                     settings.Type,
		ClusterIP:                settings.ClusterIP,
		ExternalIPs:              settings.ExternalIPs,
		LoadBalancerIP:           settings.LoadBalancerIP,
		LoadBalancerSourceRanges: settings.LoadBalancerSourceRanges,
		Ports: []corev1.ServicePort{{
			Name: "http", Port: int32(settings.Port), TargetPort: intstr.FromString("http"), NodePort: int32(settings.NodePort),
		}},
	})
	object.Annotations = settings.Annotations
	return object
}

// masterIngress leads each host to the master, or every request if none is named.
func masterIngress(pedl config.PEDL) *networkingv1.Ingress {
	hosts := pedl.Ingress.Hosts
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	object := &networkingv1.Ingress{
		ObjectMeta: meta(NamespaceName, masterName, masterName),
		Spec:       networkingv1.IngressSpec{TLS: pedl.Ingress.TLS},
	}
	object.Annotations = pedl.Ingress.Annotations
	for _, host := range hosts {
		object.Spec.Rules = append(object.Spec.Rules, networkingv1.IngressRule{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: new(networkingv1.PathTypePrefix),
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: masterName, Port: networkingv1.ServiceBackendPort{Number: int32(pedl.Service.Port)},
					}},
				}},
			}},
		})
	}
	return object
}
