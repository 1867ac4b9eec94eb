// Command cmd writes the software bill of materials of compiled programs to its standard
// output. scripts/release.sh runs it:
//
//	go run ./internal/sbom/cmd NAME VERSION SECONDS PROGRAM...
//
// The seconds are the time of the release, since 1970.
package main

import (
	"errors"
	"log"
	"os"
	"strconv"
	"time"

	"persia/internal/sbom"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return errors.New("the arguments are NAME VERSION SECONDS PROGRAM...: see scripts/release.sh")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	return sbom.Write(os.Stdout, sbom.Release{Name: args[0], Version: args[1], Time: time.Unix(seconds, 0), Programs: args[3:]})
}
