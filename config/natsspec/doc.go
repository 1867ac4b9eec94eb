// Package natsspec has what a stack file says of NATS, which carries PERSIA's messages: the
// settings, their defaults and rules, and the clusters that the jobs get.
package natsspec
