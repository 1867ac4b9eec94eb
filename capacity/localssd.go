package capacity

import "path"

// localSSDs says how many local SSDs a machine takes, by a pattern of its type and
// the number of its vCPUs; the first row that matches holds (Compute Engine, "About
// Local SSD disks", choose a valid number). Types of the third generation come with
// a fixed number, those of A3 and those that end in -lssd, or take none.
var localSSDs = []localSSDRow{
	{"a2-highgpu-*", 12, []int{1, 2, 4, 8}},
	{"a2-highgpu-*", 24, []int{2, 4, 8}},
	{"a2-highgpu-*", 48, []int{4, 8}},
	{"a2-highgpu-*", 96, []int{8}},
	{"a2-megagpu-*", 96, []int{8}},
	{"a2-ultragpu-*", 12, []int{1}},
	{"a2-ultragpu-*", 24, []int{2}},
	{"a2-ultragpu-*", 48, []int{4}},
	{"a2-ultragpu-*", 96, []int{8}},
	{"a3-highgpu-*", 26, []int{2}},
	{"a3-highgpu-*", 52, []int{4}},
	{"a3-highgpu-*", 104, []int{8}},
	{"a3-highgpu-*", 208, []int{16}},
	{"a3-megagpu-*", 208, []int{16}},
	{"a3-ultragpu-*", 224, []int{32}},
	{"c2-*", 8, []int{1, 2, 4, 8}},
	{"c2-*", 16, []int{2, 4, 8}},
	{"c2-*", 30, []int{4, 8}},
	{"c2-*", 60, []int{8}},
	{"c2d-*", 16, []int{1, 2, 4, 8}},
	{"c2d-*", 32, []int{2, 4, 8}},
	{"c2d-*", 56, []int{4, 8}},
	{"c2d-*", 112, []int{8}},
	{"g2-standard-24", 24, []int{2}},
	{"g2-*", 32, []int{1}},
	{"g2-*", 48, []int{4}},
	{"g2-*", 96, []int{8}},
	{"m1-megamem-*", 96, []int{1, 2, 3, 4, 5, 6, 7, 8}},
	{"m3-*", 64, []int{4, 8}},
	{"m3-*", 128, []int{8}},
	{"n1-*", 96, []int{1, 2, 3, 4, 5, 6, 7, 8, 16, 24}},
	{"n2-*", 10, []int{1, 2, 4, 8, 16, 24}},
	{"n2-*", 20, []int{2, 4, 8, 16, 24}},
	{"n2-*", 40, []int{4, 8, 16, 24}},
	{"n2-*", 80, []int{8, 16, 24}},
	{"n2-*", 128, []int{16, 24}},
	{"n2d-*", 16, []int{1, 2, 4, 8, 16, 24}},
	{"n2d-*", 48, []int{2, 4, 8, 16, 24}},
	{"n2d-*", 80, []int{4, 8, 16, 24}},
	{"n2d-*", 224, []int{8, 16, 24}},
}

type localSSDRow struct {
	pattern string
	maxCPUs int
	counts  []int
}

// LocalSSDs are the numbers of local SSDs that a machine of the catalogue can have
// beside none. A type that is not in the catalogue is not known here.
func (m Machine) LocalSSDs() (counts []int, known bool) {
	if _, known := Lookup(m.Type); !known {
		return nil, false
	}
	for _, row := range localSSDs {
		if matches, _ := path.Match(row.pattern, m.Type); matches && m.CPUs <= row.maxCPUs {
			return row.counts, true
		}
	}
	return nil, true
}
