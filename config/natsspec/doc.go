// Package natsspec defines NATS, which carries PERSIA's messages, in a stack file: settings,
// defaults and rules, and the NATS clusters of jobs.
package natsspec
