// Package nats runs the NATS cluster that carries PERSIA's messages: the NATS operator, and the
// NatsCluster for which the operator creates servers.
//
// Clients of NATS need only the URL of a [Cluster] and a dependency on it, and nothing of the
// operator, so that another way to run NATS can replace it.
package nats
