// Package state keeps the state of a Pulumi stack on this machine behind the
// protocol of the Pulumi Cloud.
//
// Pulumi's file backend writes the whole state at each step: a hundred jobs spend
// nine minutes of CPU on it. With the protocol's journal, each step writes what it
// has changed. The server is the toolchain's program pulumi-state, which is
// compiled with the Pulumi CLI and shares its packages.
package state
