// Package addon plays what GKE installs in a cluster: the drivers of its storage, the
// default storage class, the kind of requests for queued provisioning, and the kinds of Managed
// Service for Prometheus.
package addon
