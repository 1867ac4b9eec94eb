// Package capacity knows what the machines of Google Cloud hold and what GKE
// leaves of it to pods.
//
// It is plain arithmetic over a catalogue of machine types: it asks no cloud,
// and so a stack that does not fit is found before anything is paid for.
package capacity
