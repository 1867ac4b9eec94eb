package google

import (
	"cmp"
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"persia/gcp"
	"persia/sandbox/files"
)

//go:embed places.yaml
var placesYAML []byte

// places is the content of places.yaml, whose comments name the sources.
var places = files.Embedded[struct {
	// Date is when the zones were read, Regions has those of each region, and GPUs those of each GPU.
	Date    string
	Regions string
	GPUs    map[string]string
	Tiers   map[string]struct {
		In    string
		Share int
	}
	// Names are regular expressions by the kinds of resources.
	Names map[string]string
}]("places.yaml", placesYAML)

// aged ends the refusal of a place: Google may have added it since.
func aged() string {
	return "(the simulated Google's list is of " + places().Date + "; `bin/persia preflight` asks the real one)"
}

// zonesOf returns a zone itself, and three zones of a region. Which, and in what order, differs from region to region.
func zonesOf(location string) []any {
	letters := lettersOf(places().Regions, location)
	if isZone(location) || len(letters) < 3 {
		return []any{location}
	}
	return []any{location + "-" + letters[1:2], location + "-" + letters[2:3], location + "-" + letters[:1]}
}

func isZone(location string) bool { return strings.Count(location, "-") == 2 }

// lettersOf returns the last letters of a region's zones in a list of zones, or "".
func lettersOf(list, region string) string {
	for zones := range strings.FieldsSeq(list) {
		if letters, found := strings.CutPrefix(zones, region+"-"); found && !strings.Contains(letters, "-") {
			return letters
		}
	}
	return ""
}

// contains reports whether a list of zones has a zone. Of AI zones, which no list has, it knows only the region.
func contains(list, zone string) bool {
	region := gcp.RegionOf(zone)
	letter := zone[min(len(zone), len(region)+1):]
	return strings.HasPrefix(letter, "ai") && lettersOf(places().Regions, region) != "" ||
		len(letter) == 1 && strings.Contains(lettersOf(list, region), letter)
}

// exists reports whether there is such a region or zone.
func exists(location string) bool {
	regions := places().Regions
	return lettersOf(regions, location) != "" || isZone(location) && contains(regions, location)
}

// check refuses a resource of Compute Engine, GKE, or Filestore whose name is malformed, or whose place does not exist.
// The messages about a region, a zone, and a location are Google's own.
func check(kind, name string, body Body) error {
	form, called := places().Names[kind], Segment(name)
	if form != "" && !regexp.MustCompile("^(?:"+form+")$").MatchString(called) {
		return refuse(400, "invalid", "Invalid value for field 'resource.name': '%s'. Must be a match of regex '%s'",
			called, form)
	}
	service, _, _ := strings.Cut(kind, ".")
	region, zone, location := Element(name, "regions"), Element(name, "zones"), Element(name, "locations")
	switch {
	case !slices.Contains([]string{"compute", "container", "file"}, service):
		return nil
	case region != "" && !exists(region):
		return refuse(400, "invalid", "Invalid value for field 'region': '%s'. Unknown region %s.", region, aged())
	case zone != "" && !exists(zone):
		return refuse(400, "invalid", "Invalid value for field 'zone': '%s'. Unknown zone %s.", zone, aged())
	case location != "" && !exists(location):
		return refuse(403, "forbidden", "Permission denied on 'locations/%s' (or it may not exist) %s.", location, aged())
	}
	if region = cmp.Or(region, zone, location); isZone(region) {
		region = gcp.RegionOf(region)
	}
	for path, others := range keysOf {
		if err := checkKey(Text(body, path), append(others, region)); err != nil {
			return err
		}
	}
	for _, zone := range append(Texts(body, "locations"), Texts(body, "replicaZones")...) {
		if zone = Segment(zone); gcp.RegionOf(zone) != region || !exists(zone) {
			return refuse(400, "invalid", "Zone '%s' does not exist in region '%s' %s.", zone, region, aged())
		}
	}
	return nil
}

// checkGPUs refuses the GPUs of a pool in zones without such GPUs. The message is GKE's own.
func checkGPUs(pool Body) error {
	machine, _ := gcp.Lookup(Text(pool, "config.machineType"))
	types := []string{machine.GPUType}
	for _, accelerator := range Objects(pool, "config.accelerators") {
		types = append(types, Text(accelerator, "acceleratorType"))
	}
	for _, gpu := range types {
		zones, known := places().GPUs[gpu]
		for _, zone := range Texts(pool, "locations") {
			if known && !contains(zones, zone) {
				return refuse(400, "badRequest", `Accelerator type "%s" does not exist in zone %s %s.`, gpu, zone, aged())
			}
		}
	}
	return nil
}

// keysOf are the fields with keys of Cloud KMS, and the locations of keys that they take besides the resource's region.
var keysOf = map[string][]string{
	"kmsKeyName": nil, "databaseEncryption.keyName": nil,
	"diskEncryptionKey.kmsKeyName": {"global"}, "config.bootDiskKmsKey": {"global"},
}

// checkKey refuses a key of Cloud KMS in another location than the service takes†.
func checkKey(key string, locations []string) error {
	if location := Element(key, "locations"); key != "" && !slices.Contains(locations, location) {
		return refuse(400, "invalid", "Cloud KMS key %s is in %s, and must be in %s.", key, location,
			strings.Join(locations, " or "))
	}
	return nil
}
