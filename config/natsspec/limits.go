package natsspec

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/config/pod"
)

const (
	// mostPayload is the largest max_payload that nats-server accepts, in bytes.
	mostPayload = 64 << 20
	// persiaPayload is the size of the largest message of PERSIA, in bytes.
	persiaPayload = 50 << 20
	// pendingMessages is the default of maxPending, in messages of maxPayload. The default
	// of nats-server, 64 MiB, holds only one message of PERSIA, so a server would disconnect
	// a client that is two messages behind.
	pendingMessages = 4
	// serverProcess is the memory of a server without messages.
	serverProcess = 64 * capacity.MiB
)

// checkLimits checks each limit, and if they are valid, checks them against each other.
func checkLimits(p *check.Problems, path *field.Path, s Settings) {
	before := p.Count()
	check.Range(p, path.Child("maxPayload"), s.MaxPayload, 1, mostPayload, " bytes, the limit of nats-server; omit it for 52428800, which PERSIA needs")
	if s.MaxPayload >= 1 && s.MaxPayload < persiaPayload {
		p.Warn(path.Child("maxPayload"), "%d bytes are less than the %d that a message of PERSIA may have, and NATS disconnects a client that sends more; omit it", s.MaxPayload, persiaPayload)
	}
	if s.MaxConnections < 1 {
		p.Invalid(path.Child("maxConnections"), s.MaxConnections, "must be at least 1; omit it for 65536")
	}
	checkWriteDeadline(p, path.Child("writeDeadline"), s.WriteDeadline)
	if p.Count() > before {
		return
	}
	if s.MaxPending < s.MaxPayload {
		p.Invalid(path.Child("maxPending"), s.MaxPending, "must be at least maxPayload, %d, or nats-server does not start; omit it for four messages of that size", s.MaxPayload)
		return
	}
	checkMemory(p, path.Child("resources"), s)
}

func checkWriteDeadline(p *check.Problems, path *field.Path, text string) {
	deadline, err := time.ParseDuration(text)
	if err != nil || deadline < time.Second || deadline > 5*time.Minute {
		p.Invalid(path, text, "must be a time from 1s to 5m, like 10s; for that long, a server keeps up to maxPending bytes for a client")
	}
}

// checkMemory checks that a server has memory for what it buffers for one slow client, for a
// message from a client, and for a message from another server. It cannot know how many slow
// clients there will be.
func checkMemory(p *check.Problems, path *field.Path, s Settings) {
	memory, at, ok := pod.Limit(path, s.Resources, corev1.ResourceMemory)
	needed := resource.NewQuantity(serverProcess+int64(s.MaxPending)+2*int64(s.MaxPayload), resource.BinarySI)
	if ok && memory.Sign() > 0 && memory.Cmp(*needed) < 0 {
		p.Invalid(at, memory.String(), "is less than %dMi, which a server with one slow client needs: maxPending, two messages of maxPayload, and 64Mi; increase it, or lower those limits",
			(needed.Value()+capacity.MiB-1)/capacity.MiB)
	}
}
