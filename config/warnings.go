package config

import "fmt"

// mostNATS is how many servers NATS is commonly run with at most.
const mostNATS = 9

// Warnings are what a valid stack may not have meant.
func (s *Stack) Warnings() []string {
	warnings := s.volumeWarnings()
	size := s.NATS.Size
	if size > 1 && size%2 == 0 {
		warnings = append(warnings, fmt.Sprintf("%s.size: %d is even; an odd number of servers is usual, since %d stay as available", natsKey, size, size-1))
	}
	if size > mostNATS {
		warnings = append(warnings, fmt.Sprintf("%s.size: %d servers keep %d routes, each to each other; %d or less are usual, with more resources each",
			natsKey, size, size*(size-1)/2, mostNATS))
	}
	return warnings
}
