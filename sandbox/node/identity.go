package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity of a client's certificate is longer than any sandbox is up.
const validity = 365 * 24 * time.Hour

// writeCredentials writes the kubeconfigs of the machine's programs. The kubelet and
// kube-proxy are who they are on any node, so that the API server grants them no more.
// CoreDNS and the network policies' controller are the administrator, and run on the
// administrator's machine.
func (o Options) writeCredentials(node string) error {
	admin, err := clientcmd.LoadFromFile(o.Kubeconfig)
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*admin, o.path(configDir, "admin.kubeconfig")); err != nil {
		return err
	}
	authority, err := tls.LoadX509KeyPair(filepath.Join(o.PKI, "ca.crt"), filepath.Join(o.PKI, "ca.key"))
	if err != nil {
		return fmt.Errorf("certificate authority of the control plane: %w", err)
	}
	for name, subject := range map[string]pkix.Name{
		"kubelet":    {CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		"kube-proxy": {CommonName: "system:kube-proxy"},
	} {
		user, err := sign(authority, subject)
		if err != nil {
			return fmt.Errorf("certificate of %s: %w", subject.CommonName, err)
		}
		config := admin.DeepCopy()
		config.AuthInfos = map[string]*clientcmdapi.AuthInfo{name: user}
		config.Contexts[config.CurrentContext].AuthInfo = name
		if err := clientcmd.WriteToFile(*config, o.path(configDir, name+".kubeconfig")); err != nil {
			return err
		}
	}
	ca, err := os.ReadFile(filepath.Join(o.PKI, "ca.crt"))
	if err != nil {
		return err
	}
	return os.WriteFile(o.path(configDir, "ca.crt"), ca, 0o644)
}

// sign makes a key and the certificate of a client.
func sign(authority tls.Certificate, subject pkix.Name) (*clientcmdapi.AuthInfo, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		// Clocks are one, but a second may be in the making.
		NotBefore:   now.Add(-time.Minute),
		NotAfter:    now.Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &clientcmdapi.AuthInfo{
		ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}
