package node

import "persia/sandbox/images/archive"

const (
	// pauseImage is the image of the first container of every pod.
	pauseImage   = "registry.k8s.io/pause:3.10"
	pauseArchive = "pause.tar"
)

// writePauseImage writes the archive of an image that consists of one program.
func writePauseImage(path, program string) error {
	return archive.Image{
		Names:      []string{pauseImage},
		Layers:     []archive.Layer{{"pause": archive.Program(program)}},
		Entrypoint: []string{"/pause"},
		User:       "65535:65535",
	}.Write(path)
}
