package gke

import (
	"encoding/json"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
)

// kubeconfig is the text of a kubeconfig for the cluster. It names the program
// that gets a credential rather than holding one, so that it works for whoever
// is logged in to Google Cloud and never expires.
func kubeconfig(cluster *container.Cluster) pulumi.StringOutput {
	certificate := cluster.MasterAuth.ClusterCaCertificate().Elem()
	text := pulumi.All(cluster.Name, cluster.Endpoint, certificate).ApplyT(
		func(values []any) (string, error) {
			return kubeconfigText(values[0].(string), values[1].(string), values[2].(string))
		}).(pulumi.StringOutput)
	return pulumi.ToSecret(text).(pulumi.StringOutput)
}

// kubeconfigText is JSON, which is YAML too. certificate is in base64.
func kubeconfigText(name, endpoint, certificate string) (string, error) {
	type object = map[string]any
	text, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"contexts": []object{{
			"name":    name,
			"context": object{"cluster": name, "user": name},
		}},
		"clusters": []object{{
			"name": name,
			"cluster": object{
				"server":                     "https://" + endpoint,
				"certificate-authority-data": certificate,
			},
		}},
		"users": []object{{
			"name": name,
			"user": object{"exec": object{
				"apiVersion":         "client.authentication.k8s.io/v1beta1",
				"command":            gcp.AuthPlugin,
				"installHint":        "Install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
				"interactiveMode":    "Never",
				"provideClusterInfo": true,
			}},
		}},
	}, "", "  ")
	return string(text), err
}
