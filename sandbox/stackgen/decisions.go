package stackgen

import "math/rand/v2"

// Decisions returns a source of random numbers that a fuzzer can steer: each number consumes two
// bytes, and after the last bytes the numbers depend on their count.
func Decisions(bytes []byte) rand.Source {
	return &decisions{bytes, rand.NewPCG(uint64(len(bytes)), 0)}
}

type decisions struct {
	left []byte
	rest rand.Source
}

func (d *decisions) Uint64() uint64 {
	if len(d.left) < 2 {
		return d.rest.Uint64()
	}
	// The same number in all parts: some callers use the upper bits, others the lower ones.
	number := uint64(d.left[0])<<8 | uint64(d.left[1])
	d.left = d.left[2:]
	return number * 0x0001_0001_0001_0001
}
