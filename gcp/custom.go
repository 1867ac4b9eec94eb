package gcp

import (
	"regexp"
	"strconv"
)

// customForm matches custom machine types: their series, which is N1 without one, their vCPUs, and their memory in MiB
// (Compute Engine, "Create a VM with a custom machine type"). Of G2, the name does not say the number of GPUs.
var customForm = regexp.MustCompile(`^(?:(?:e2|n1|n2|n2d|n4)-)?custom-([1-9][0-9]{0,2})-([1-9][0-9]{2,7})(?:-ext)?$`)

// custom returns the machine of a custom type, whose name says its shape.
func custom(machineType string) (Machine, bool) {
	parts := customForm.FindStringSubmatch(machineType)
	if parts == nil {
		return Machine{}, false
	}
	cpus, _ := strconv.Atoi(parts[1])
	mebibytes, _ := strconv.ParseInt(parts[2], 10, 64)
	return Machine{Type: machineType, CPUs: cpus, MemoryBytes: mebibytes << 20}, mebibytes%256 == 0
}
