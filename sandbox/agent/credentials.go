package agent

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"persia/sandbox/files"
)

// tokenLifetime is longer than any sandbox is up, so that no token has to be renewed.
const tokenLifetime = 365 * 24 * time.Hour

// accountFolder is where a container finds the token and the certificate of the API server.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// apiServerEnv says where the API server is, as the kubelet does.
func apiServerEnv(url string) []string {
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "https://"))
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
}

// writeCredentials writes the pod's access to the API into a folder, the token of its service account,
// bound to the pod, and a kubeconfig with it, and returns the file of the kubeconfig.
func (r *runner) writeCredentials(ctx context.Context, dir string) (kubeconfig string, err error) {
	account := r.pod.Spec.ServiceAccountName
	request, err := r.client.CoreV1().ServiceAccounts(r.pod.Namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(tokenLifetime.Seconds())),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: r.pod.Name, UID: r.pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", r.pod.Namespace, account, err)
	}
	config := rest.CopyConfig(r.options.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return "", err
	}
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"sandbox": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"pod": {Token: request.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"pod": {Cluster: "sandbox", AuthInfo: "pod", Namespace: r.pod.Namespace}},
		CurrentContext: "pod",
	})
	if err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"ca.crt": config.CAData, "token": []byte(request.Status.Token), "kubeconfig": content} {
		if err := files.Write(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "kubeconfig"), nil
}
