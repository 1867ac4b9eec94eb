package nats

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

func serverURL(nats config.NATS) *url.URL {
	scheme := "nats"
	if nats.TLS.Clients != nil {
		scheme = "tls"
	}
	return &url.URL{Scheme: scheme, Host: fmt.Sprintf("%s:%d", nats.Host(), clientPort)}
}

func clientSecret(nats config.NATS) string      { return nats.Name + "-client" }
func usersSecret(nats config.NATS) string       { return nats.Name + "-users" }
func clientCertificate(nats config.NATS) string { return nats.Name + "-client-tls" }
func routeCertificate(nats config.NATS) string  { return nats.Name + "-route-tls" }

// registerSecrets registers the Secrets of the servers and their clients.
func registerSecrets(ctx *pulumi.Context, name string, args ClusterArgs, child pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	var registered []pulumi.CustomResource
	for _, secret := range secrets(args) {
		suffix := secret.Name[len(args.NATS.Name):]
		resource, err := kube.Register(ctx, name+suffix, secret, child)
		if err != nil {
			return nil, err
		}
		registered = append(registered, resource)
	}
	return registered, nil
}

func secrets(args ClusterArgs) []*corev1.Secret {
	var secrets []*corev1.Secret
	nats := args.NATS
	if len(nats.Users) > 0 {
		user := nats.Users[0]
		withUser := serverURL(nats)
		withUser.User = url.UserPassword(user.Name, string(user.Password))
		secrets = append(secrets,
			secret(nats, Namespace, usersSecret(nats), map[string]string{"users.json": usersJSON(nats.Users)}),
			secret(nats, args.Clients.Namespace, clientSecret(nats), map[string]string{user.Name: withUser.String()}))
	}
	// The operator expects files with these names.
	if c := nats.TLS.Clients; c != nil {
		secrets = append(secrets, secret(nats, Namespace, clientCertificate(nats),
			map[string]string{"ca.pem": c.CA, "server.pem": c.Certificate, "server-key.pem": string(c.Key)}))
	}
	if c := nats.TLS.Routes; c != nil {
		secrets = append(secrets, secret(nats, Namespace, routeCertificate(nats),
			map[string]string{"ca.pem": c.CA, "route.pem": c.Certificate, "route-key.pem": string(c.Key)}))
	}
	return secrets
}

func secret(nats config.NATS, namespace, name string, contents map[string]string) *corev1.Secret {
	data := map[string][]byte{}
	for file, text := range contents {
		data[file] = []byte(text)
	}
	return &corev1.Secret{
		ObjectMeta: kube.Meta(namespace, name, kube.Labels("nats", nats.Name)),
		Data:       data,
	}
}

// usersJSON returns the part authorization of nats-server's configuration, into which the
// operator copies it.
func usersJSON(users []config.NATSUser) string {
	type user struct {
		Name     string `json:"username"`
		Password string `json:"password"`
	}
	var list []user
	for _, u := range users {
		list = append(list, user{u.Name, string(u.Password)})
	}
	text, err := json.Marshal(map[string]any{"users": list})
	if err != nil {
		panic(err) // texts always marshal
	}
	return string(text)
}
