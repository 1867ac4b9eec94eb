package config

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
)

const (
	// mostPayload is the largest max_payload that nats-server accepts, in bytes.
	mostPayload = 64 << 20
	// pendingMessages is how many messages of maxPayload maxPending is by default.
	// nats-server's own 64 MiB are one of PERSIA's: a client that falls behind by a
	// second one would be cut off.
	pendingMessages = 4
	// natsProcess is what a server takes with no message in it.
	natsProcess = 64 * capacity.MiB
)

// natsLimits checks the limits by themselves and, if they are valid, against each
// other.
func (v *validator) natsLimits(path *field.Path, n *NATS) {
	before := v.Count()
	if n.MaxPayload < 1 || n.MaxPayload > mostPayload {
		v.invalid(path.Child("maxPayload"), n.MaxPayload, "must be from 1 to %d bytes, as nats-server accepts no more; leave it out for 52428800, which PERSIA needs", mostPayload)
	}
	if n.MaxConnections < 1 {
		v.invalid(path.Child("maxConnections"), n.MaxConnections, "must be at least 1; leave it out for 65536")
	}
	v.writeDeadline(path.Child("writeDeadline"), n.WriteDeadline)
	if v.Count() > before {
		return
	}
	if n.MaxPending < n.MaxPayload {
		v.invalid(path.Child("maxPending"), n.MaxPending, "must be at least maxPayload, %d, since nats-server starts with no less; leave it out for four messages of that size", n.MaxPayload)
		return
	}
	v.natsMemory(path.Child("resources"), n)
}

func (v *validator) writeDeadline(path *field.Path, text string) {
	deadline, err := time.ParseDuration(text)
	if err != nil || deadline < time.Second || deadline > 5*time.Minute {
		v.invalid(path, text, "must be a time from 1s to 5m, like 10s; a server keeps up to maxPending bytes for a client for so long")
	}
}

// natsMemory checks that a server holds one client that is as slow as it may be,
// and beside it a message that comes from a client and one that comes from
// another server. How many slow clients there are, nobody knows beforehand.
func (v *validator) natsMemory(path *field.Path, n *NATS) {
	memory, at, ok := memoryOf(path, n.Resources)
	needed := resource.NewQuantity(natsProcess+int64(n.MaxPending)+2*int64(n.MaxPayload), resource.BinarySI)
	if ok && memory.Sign() > 0 && memory.Cmp(*needed) < 0 {
		v.invalid(at, memory.String(), "is less than %dMi, which a server with one slow client needs: maxPending, two messages of maxPayload and 64Mi; write more, or smaller limits",
			(needed.Value()+capacity.MiB-1)/capacity.MiB)
	}
}

// memoryOf is how much memory a container may use: up to its limit, or what it
// asks for where it has none.
func memoryOf(path *field.Path, r corev1.ResourceRequirements) (resource.Quantity, *field.Path, bool) {
	if q, ok := r.Limits[corev1.ResourceMemory]; ok {
		return q, path.Child("limits").Key(string(corev1.ResourceMemory)), true
	}
	q, ok := r.Requests[corev1.ResourceMemory]
	return q, path.Child("requests").Key(string(corev1.ResourceMemory)), ok
}
