package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// replacement makes Pulumi replace the NatsCluster, and with it all of its servers,
// when a setting changes that neither the operator nor a running server can apply. The
// operator never changes the pods that it has created, except for their version, and a
// server rereads its configuration only if a reloader tells it to.
func replacement(nats config.NATS) pulumi.ResourceOption {
	options := []pulumi.ResourceOption{
		pulumi.ReplaceOnChanges(replacedBy(nats)),
		// The name is taken until the old object is deleted.
		pulumi.DeleteBeforeReplace(true),
	}
	if !nats.ConfigReload {
		options = append(options, pulumi.ReplacementTrigger(secretsOf(nats)))
	}
	return pulumi.Composite(options...)
}

// replacedBy returns the paths in a NatsCluster whose change replaces it.
func replacedBy(nats config.NATS) []string {
	paths := []string{
		"spec.serverImage",
		"spec.pod",
		"spec.template",
		"spec.tls",
		// nats-server refuses to reload a configuration in which one of these has
		// changed.
		"spec.natsConfig.maxPending",
		"spec.lameDuckDurationSeconds",
	}
	if !nats.ConfigReload {
		paths = append(paths, "spec.natsConfig", "spec.auth")
	}
	return paths
}

// secretsOf returns the users and certificates, which the NatsCluster only refers to.
func secretsOf(nats config.NATS) pulumi.Output {
	contents := pulumi.StringArray{pulumi.String(usersJSON(nats.Users))}
	for _, certificate := range []*config.Certificate{nats.TLS.Clients, nats.TLS.Routes} {
		if certificate == nil {
			contents = append(contents, pulumi.String(""))
			continue
		}
		contents = append(contents, pulumi.String(certificate.CA+certificate.Certificate+string(certificate.Key)))
	}
	return pulumi.ToSecret(contents)
}
