// Package nats runs the NATS cluster that carries PERSIA's messages: the NATS operator,
// and the NatsCluster for which the operator creates servers.
//
// Clients of NATS need only [Cluster]'s URL and a dependency on it, nothing of the
// operator, so that another way to run NATS can replace it.
package nats
