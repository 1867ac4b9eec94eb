// Fetch prints what is at an HTTP URL, or connects to tcp://HOST:PORT. Debian's static
// busybox crashes when it looks names up.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const timeout = 3 * time.Second

func main() {
	if err := fetch(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fetch(url string) error {
	if address, tcp := strings.CutPrefix(url, "tcp://"); tcp {
		connection, err := net.DialTimeout("tcp", address, timeout)
		if err != nil {
			return err
		}
		return connection.Close()
	}
	client := http.Client{Timeout: timeout}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
