package gcp

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Custom is the shape of a custom machine type, from its name.
type Custom struct {
	CPUs int
	// MemoryMiB is the memory in MiB.
	MemoryMiB int64
	// Extended machines may have more memory for each vCPU.
	Extended bool
}

// customForm matches custom machine types: their series, which is N1 without one, their vCPUs,
// and their memory in MiB.
var customForm = regexp.MustCompile(`^(?:([a-z0-9]+)-)?custom-([0-9]{1,6})-([0-9]{1,9})(-ext)?$`)

// ParseCustom reads the name of a custom machine type, and reports whether it is one.
func ParseCustom(machineType string) (Custom, bool) {
	parts := customForm.FindStringSubmatch(machineType)
	if parts == nil {
		return Custom{}, false
	}
	cpus, _ := strconv.Atoi(parts[2])
	memory, _ := strconv.ParseInt(parts[3], 10, 64)
	return Custom{CPUs: cpus, MemoryMiB: memory, Extended: parts[4] != ""}, true
}

// customRule says which custom machine types a series has.
type customRule struct {
	cpus func(n int) bool
	// say describes the numbers of vCPUs.
	say string
	// least and most are the memory of a vCPU in GiB, if the machine is not extended.
	least, most float64
	// total is the most memory of a machine in GiB.
	total int64
	// extended machines exist.
	extended bool
}

// customRules are from Compute Engine, "Create a VM with a custom machine type", whose sample
// "Create VMs with custom machine types" has the same numbers. N4 has at least the memory that
// its largest predefined type has.
var customRules = map[string]customRule{
	"e2": {evenTo(32), "an even number from 2 to 32", 0.5, 8, 128, false},
	"n1": {func(n int) bool { return n == 1 || evenTo(96)(n) }, "1, or an even number to 96", 0.9, 6.5, 624, true},
	"n2": {func(n int) bool { return evenTo(32)(n) || n > 32 && n <= 128 && n%4 == 0 }, "an even number to 32, or a multiple of 4 to 128", 0.5, 8, 864, true},
	"n2d": {func(n int) bool { return slices.Contains([]int{2, 4, 8, 16, 32, 48, 64, 80, 96}, n) },
		"2, 4, 8, 16, 32, 48, 64, 80 or 96", 0.5, 8, 768, true},
	"n4": {evenTo(80), "an even number from 2 to 80", 0.5, 8, 640, true},
}

func evenTo(most int) func(int) bool {
	return func(n int) bool { return n >= 2 && n <= most && n%2 == 0 }
}

// CheckCustom returns the reason why Compute Engine does not have a custom machine type, or
// nil. For an unknown series of N or E, it knows only that memory is in steps of
// 256 MiB. G2 has custom memory for the vCPUs of its predefined types.
func CheckCustom(machineType string) error {
	c, custom := ParseCustom(machineType)
	if !custom {
		return nil
	}
	family := Machine{Type: machineType}.Family()
	rule, known := customRules[family]
	perCPU := float64(c.MemoryMiB) / 1024 / float64(max(1, c.CPUs))
	_, g2 := Lookup(fmt.Sprintf("g2-standard-%d", c.CPUs))
	switch {
	case !known && family != "g2" && !strings.HasPrefix(family, "n") && !strings.HasPrefix(family, "e"):
		return fmt.Errorf("there are no custom machines of %s, only of N1, N2, N2D, N4 and E2", strings.ToUpper(family))
	case c.MemoryMiB%256 != 0:
		return fmt.Errorf("the memory must be a multiple of 256Mi, and %dMi is not", c.MemoryMiB)
	case family == "g2" && !g2:
		return errors.New("the vCPUs must be as many as a predefined type of G2 has")
	case !known:
		return nil
	case !rule.cpus(c.CPUs):
		return fmt.Errorf("the vCPUs of %s must be %s", strings.ToUpper(family), rule.say)
	case c.Extended && !rule.extended:
		return fmt.Errorf("%s has no extended memory (-ext)", strings.ToUpper(family))
	case perCPU < rule.least-0.001:
		return fmt.Errorf("each vCPU of %s needs at least %gGi of memory, and has %.2fGi", strings.ToUpper(family), rule.least, perCPU)
	case perCPU > rule.most && !c.Extended && rule.extended:
		return fmt.Errorf("each vCPU of %s can have at most %gGi of memory, and has %.2fGi; append -ext for more", strings.ToUpper(family), rule.most, perCPU)
	case perCPU > rule.most && !c.Extended:
		return fmt.Errorf("each vCPU of %s can have at most %gGi of memory, and has %.2fGi", strings.ToUpper(family), rule.most, perCPU)
	case c.MemoryMiB > rule.total*1024:
		return fmt.Errorf("machines of %s have at most %dGi of memory", strings.ToUpper(family), rule.total)
	}
	return nil
}
