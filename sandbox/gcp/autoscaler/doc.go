// Package autoscaler plays GKE's cluster autoscaler. It gives the autoscaled node pools of the simulated Google Cloud
// the nodes that pods wait for, up to each pool's maximum, and removes empty nodes, down to the pool's minimum. It
// moves no pod.
//
// [Run] works in rounds. A round makes one plan: the pods that the scheduler found
// no node for go first onto existing nodes with room, and then onto new nodes. A pod
// thus waits for the node of an earlier round, and does not get another.
//
// Pools with queued provisioning get nodes for ProvisioningRequests of GKE's class, all nodes of
// a request at once, and none for pods. A [Stock] limits what Google Cloud has.
//
// Of what a pod asks of its node, a plan sees the requests, the node selector and required node affinity, the
// tolerations, and required anti-affinity to pods of the same node. It does not see affinity to pods, spread
// constraints, host ports and volumes.
package autoscaler
