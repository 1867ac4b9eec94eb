package node

import "persia/sandbox/images"

const (
	// pauseImage is the image of the first container of every pod.
	pauseImage   = "registry.k8s.io/pause:3.10"
	pauseArchive = "pause.tar"
)

// writePauseImage writes the archive of an image that consists of one program.
func writePauseImage(path, program string) error {
	return images.Image{
		Names:      []string{pauseImage},
		Layers:     []images.Layer{{"pause": images.Program(program)}},
		Entrypoint: []string{"/pause"},
		User:       "65535:65535",
	}.Write(path)
}
