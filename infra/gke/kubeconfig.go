package gke

import (
	"encoding/json"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
)

// Who the credential plugin asks for a credential.
var (
	// byLogin is for people: the account that gcloud is logged in with.
	byLogin []string
	// byDefaultCredentials is for Pulumi, which reaches Google Cloud itself by application default credentials: without
	// a login of gcloud, as in most continuous integration, there is no other way in.
	byDefaultCredentials = []string{"--use_application_default_credentials"}
)

// kubeconfig returns the text of a kubeconfig for the cluster. It names a program that gets a
// credential and contains none, so it never expires.
func kubeconfig(cluster *container.Cluster, pluginArgs []string) pulumi.StringOutput {
	certificate := cluster.MasterAuth.ClusterCaCertificate().Elem()
	text := pulumi.All(cluster.Name, cluster.Endpoint, certificate).ApplyT(
		func(values []any) (string, error) {
			return kubeconfigText(values[0].(string), values[1].(string), values[2].(string), pluginArgs)
		}).(pulumi.StringOutput)
	return pulumi.ToSecret(text).(pulumi.StringOutput)
}

// kubeconfigText returns JSON, which is also YAML. certificate is in base64.
func kubeconfigText(name, endpoint, certificate string, pluginArgs []string) (string, error) {
	type object = map[string]any
	plugin := object{
		"apiVersion":         "client.authentication.k8s.io/v1beta1",
		"command":            gcp.AuthPlugin,
		"installHint":        "Install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
		"interactiveMode":    "Never",
		"provideClusterInfo": true,
	}
	if len(pluginArgs) > 0 {
		plugin["args"] = pluginArgs
	}
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
			"user": object{"exec": plugin},
		}},
	}, "", "  ")
	return string(text), err
}
