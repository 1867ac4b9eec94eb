package stackgen

import (
	"io/fs"
	"math/rand/v2"
)

// Generator makes stacks of the stack files that it begins with. It may be used by
// several goroutines.
type Generator struct {
	schema *Schema
	begin  []Stack
	files  fs.FS
}

// NewGenerator makes a generator. Each of the stacks to begin with must be one that
// the program accepts, with the files of the project.
func NewGenerator(schema *Schema, begin []Stack, files fs.FS) *Generator {
	return &Generator{schema, begin, files}
}

// Generate returns a stack that the program accepts, after n random changes. It skips changes that
// the program refuses. The result depends on random alone.
func (g *Generator) Generate(random *rand.Rand, changes int) Stack {
	m := &maker{schema: g.schema, Rand: random}
	stack := g.begin[random.IntN(len(g.begin))]
	for range changes {
		if changed := m.change(stack); changed.Check(g.files) == nil {
			stack = changed
		}
	}
	return stack
}
