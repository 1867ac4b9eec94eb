package stackgen

import (
	"io/fs"
	"math/rand/v2"
	"sync"
)

// Generator makes stacks of the stack files that it begins with. It may be used by
// several goroutines.
type Generator struct {
	schema *Schema
	begin  []Stack
	files  fs.FS

	mu       sync.Mutex
	accepted map[Key]int
	tries    Tries
}

// Tries are how many changes were tried, and how many of them the program accepted.
type Tries struct{ Made, Accepted int }

// NewGenerator makes a generator. Each of the stacks to begin with must be one that
// the program accepts, with the files of the project.
func NewGenerator(schema *Schema, begin []Stack, files fs.FS) *Generator {
	return &Generator{schema: schema, begin: begin, files: files, accepted: map[Key]int{}}
}

// Generate returns a stack that the program accepts, after n random changes. It skips changes that
// the program refuses. The result depends on random alone.
func (g *Generator) Generate(random *rand.Rand, changes int) Stack {
	m := &maker{schema: g.schema, Rand: random}
	stack := g.begin[random.IntN(len(g.begin))]
	tries := Tries{Made: changes}
	for range changes {
		if changed := m.change(stack); changed.Check(g.files) == nil {
			stack = changed
			tries.Accepted++
		}
	}
	g.count(stack, tries)
	return stack
}

func (g *Generator) count(stack Stack, tries Tries) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tries.Made += tries.Made
	g.tries.Accepted += tries.Accepted
	used := map[Key]bool{}
	g.schema.Used(stack, func(k Key) { used[k] = true })
	for key := range used {
		g.accepted[key]++
	}
}

// Tries counts the tries of all stacks.
func (g *Generator) Tries() Tries {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tries
}

// Unused returns the keys of the schema that no stack had.
func (g *Generator) Unused() []Key {
	g.mu.Lock()
	defer g.mu.Unlock()
	var unused []Key
	for _, key := range g.schema.keys {
		if g.accepted[key] == 0 {
			unused = append(unused, key)
		}
	}
	return unused
}
