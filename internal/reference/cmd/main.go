// Command cmd writes the configuration reference in docs/reference and stack.schema.json from the types of package
// config. Run it in the root of the repository:
//
//	go run ./internal/reference/cmd
package main

import (
	"log"
	"os"

	"persia/internal/reference"
)

func main() {
	log.SetFlags(0)
	r, err := reference.Read()
	if err != nil {
		log.Fatal(err)
	}
	files, err := r.Files()
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
