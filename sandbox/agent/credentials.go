package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// tokenLifetime is the lifetime that a kubelet requests.
	tokenLifetime = time.Hour
	// tokenRetry is the time between attempts to renew a token.
	tokenRetry = 10 * time.Second
)

// credentials are a pod's access to the API: a kubeconfig that refers to a file
// with a token, which client-go reads again every minute.
type credentials struct {
	client kubernetes.Interface
	pod    *corev1.Pod
	dir    string
}

// accountFolder is where a container finds the token and the certificate of the API server.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// apiServerEnv says where the API server is, as the kubelet does.
func apiServerEnv(url string) []string {
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "https://"))
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
}

func (c *credentials) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }
func (c *credentials) tokenFile() string  { return filepath.Join(c.dir, "token") }

// writeKubeconfig writes a kubeconfig for the API server that config names.
func (c *credentials) writeKubeconfig(config *rest.Config) error {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"sandbox": {
			Server:                   config.Host,
			CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"pod": {TokenFile: c.tokenFile()}},
		Contexts: map[string]*clientcmdapi.Context{"pod": {
			Cluster: "sandbox", AuthInfo: "pod", Namespace: c.pod.Namespace,
		}},
		CurrentContext: "pod",
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(c.dir, "ca.crt"), config.CAData, 0o600); err != nil {
		return err
	}
	return renameio.WriteFile(c.kubeconfig(), content, 0o600)
}

// writeToken writes a new token of the pod's service account, bound to the pod,
// and returns when to renew it.
func (c *credentials) writeToken(ctx context.Context) (renew time.Time, err error) {
	account := c.pod.Spec.ServiceAccountName
	seconds := int64(tokenLifetime.Seconds())
	request, err := c.client.CoreV1().ServiceAccounts(c.pod.Namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				Kind: "Pod", APIVersion: "v1", Name: c.pod.Name, UID: c.pod.UID,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("token of service account %s/%s: %w", c.pod.Namespace, account, err)
	}
	// Never half a token for the reader.
	if err := renameio.WriteFile(c.tokenFile(), []byte(request.Status.Token), 0o600); err != nil {
		return time.Time{}, err
	}
	return renewAt(time.Now(), request.Status.ExpirationTimestamp.Time), nil
}

// renewAt is when 80 % of a token's life is over, as a kubelet has it.
func renewAt(issued, expires time.Time) time.Time {
	return issued.Add(expires.Sub(issued) * 8 / 10)
}

// keep renews the token until ctx ends. Failures are reported and retried: the
// old token is good for some minutes yet.
func (c *credentials) keep(ctx context.Context, renew time.Time, report func(error)) {
	for {
		if !sleep(ctx, time.Until(renew)) {
			return
		}
		next, err := c.writeToken(ctx)
		if err != nil {
			if ctx.Err() == nil {
				report(err)
			}
			next = time.Now().Add(tokenRetry)
		}
		renew = next
	}
}

// sleep returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
