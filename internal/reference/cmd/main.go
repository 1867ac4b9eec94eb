// Command cmd writes the configuration reference in docs/reference and stack.schema.json from the types of package
// config. Run it in the root of the repository:
//
//	go run ./internal/reference/cmd
package main

import (
	"log"
	"os"
	"path/filepath"

	"persia/internal/reference"
)

func main() {
	log.SetFlags(0)
	if err := write(); err != nil {
		log.Fatal(err)
	}
}

func write() error {
	sections, err := reference.Sections("config")
	if err != nil {
		return err
	}
	schema, err := reference.Schema(sections)
	if err != nil {
		return err
	}
	for name, text := range reference.Pages(sections) {
		if err := os.WriteFile(filepath.Join("docs", "reference", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile("stack.schema.json", schema, 0o644)
}
