// Package nats runs the NATS cluster that carries PERSIA's messages: the NATS
// operator, and the NatsCluster that it makes servers of.
//
// Whoever uses NATS needs [Cluster]'s URL and a dependency on it, nothing of the
// operator, so that another way to run NATS can take its place.
package nats
