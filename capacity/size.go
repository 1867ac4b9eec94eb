package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"persia/gcp"
)

// Model describes the embeddings that the embedding parameter servers of a job hold.
type Model struct {
	Parameters float64 // of all embeddings, without the optimizer's state
	Dim        int64   // of an embedding
	Optimizer  string  // one of Optimizers
}

// Optimizers are PERSIA's optimizers of embeddings, and how many numbers of 4 bytes a server keeps for each parameter: the
// parameter itself, and the optimizer's state (PERSIA 606cf75, rust/persia-common/src/optim.rs, require_space).
var Optimizers = map[string]int64{"adagrad": 2, "adam": 3, "sgd": 1}

// What an embedding takes besides its numbers (PERSIA 606cf75, rust/persia-embedding-holder). In memory, each place has a
// node of a list, and 17 bytes in a hash map of which 7/8 may be filled. In a checkpoint, each place has 9 bytes, and an
// embedding also its ID and two lengths. Files of PERSIA 0.1.dev251 had this size and 37 bytes, and servers with 1.7 million
// embeddings took 28 to 38 MB more memory.
const placeBytes, savedPlace, savedEmbedding = 48 + 17*8.0/7, 9, 20

// A server leaves these shares free: of its places, because IDs are not spread evenly and a full table drops embeddings,
// and of its memory, for requests and for checkpoints that it loads.
const freePlaces, freeMemory = 0.05, 0.1

// Servers are the embedding parameter servers of a model, on a node pool of their own.
type Servers struct {
	Machine                     gcp.Machine
	Nodes, Replicas             int
	CPUs, GiB                   int64 // the limits of one server
	Capacity, Tables            int64 // the embeddings that one server can hold, and its tables, which are files of a checkpoint
	CheckpointBytes, HourlyCost float64
}

// Servers returns servers on the machines without GPUs whose list price is least, and among these on the fewest.
func (m Model) Servers(region string) Servers {
	var all []Servers
	for _, name := range gcp.MachineTypes() {
		machine, _ := gcp.Lookup(name)
		perNode := max(1, machine.CPUs/104)                         // in PERSIA's published run, four shared 416 vCPUs
		gcsFuse := Resources{MilliCPU: 250, MemoryBytes: 320 * MiB} // what it requests by default
		room := Allocatable(machine).Minus(NodeAgents).Share(1, perNode).Minus(gcsFuse)
		price, known := machine.ListPrice(region, false)
		if known && machine.GPUs == 0 && room.MilliCPU >= 1000 && room.MemoryBytes > 2*GiB {
			s := m.on(machine, perNode, room)
			s.HourlyCost = price * float64(s.Nodes)
			all = append(all, s)
		}
	}
	return slices.MinFunc(all, func(a, b Servers) int {
		return cmp.Or(cmp.Compare(math.Round(a.HourlyCost*100), math.Round(b.HourlyCost*100)), cmp.Compare(a.Nodes, b.Nodes))
	})
}

// on returns servers on the fewest machines, with room for each server.
func (m Model) on(machine gcp.Machine, perNode int, room Resources) Servers {
	embeddings, numbers := math.Ceil(m.Parameters/float64(m.Dim)), 4*m.Dim*Optimizers[m.Optimizer]
	place := placeBytes + float64((numbers+8+15)/16*16) // malloc keeps 8 bytes more, and aligns to 16
	for nodes := 1 + int(embeddings*place/float64(room.MemoryBytes)/float64(perNode)); ; nodes++ {
		s := Servers{Machine: machine, Nodes: nodes, Replicas: nodes * perNode, CPUs: room.MilliCPU / 1000}
		s.Tables, s.Capacity = tables(embeddings * (1 + freePlaces) / float64(s.Replicas))
		s.GiB = 1 + int64(math.Ceil(place*float64(s.Capacity)*(1+freeMemory)/GiB))
		if s.GiB*GiB <= room.MemoryBytes {
			s.CheckpointBytes = savedPlace*float64(s.Capacity)*float64(s.Replicas) + embeddings*float64(savedEmbedding+numbers)
			return s
		}
	}
}

// tables returns the number of tables of a server, at most 1000, and its places in all of them. A hash map has a power of
// two of buckets, so other numbers of places waste up to half of its memory.
func tables(places float64) (tables, capacity int64) {
	for buckets := int64(1 << 14); ; buckets *= 2 {
		if tables = max(4, int64(math.Ceil(places/float64(buckets*7/8-1)))); tables <= 1000 {
			return tables, tables * (buckets*7/8 - 1)
		}
	}
}

// String returns a table for people.
func (s Servers) String() string {
	t := newTable("MEMORY", "SERVERS", "CAPACITY", "MACHINES", "CHECKPOINT", "USD A MONTH")
	t.row(amount(float64(s.GiB)*float64(s.Replicas), 1024, "GiB", "TiB"), fmt.Sprint(s.Replicas), fmt.Sprint(s.Capacity),
		fmt.Sprintf("%d × %s", s.Nodes, s.Machine.Type), amount(s.CheckpointBytes/1e9, 1000, "GB", "TB"),
		thousands(int(s.HourlyCost*hoursAMonth)))
	return filled(t)[0]
}

// amount returns an amount with a unit, or with one that is so many times as large.
func amount(n, times float64, unit, larger string) string {
	if n >= 1000 {
		n, unit = n/times, larger
	}
	return fmt.Sprintf("%.*f %s", 1-min(1, int(n/100)), n, unit)
}
