package config

import (
	_ "embed"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"persia/config/input"
)

// Load reads a stack, completes it with defaults, and checks it. Get returns the value of a key as Pulumi does: a
// string as it is, and anything else as JSON. Files is the directory of the project, with the manifests that jobs
// name. The error lists all problems of the stack, one per line.
func Load(get func(key string) (string, bool), files fs.FS) (*Stack, error) {
	var s *Stack
	check := func(edits input.Edits) *input.Problems {
		p := &input.Problems{Absent: absent()}
		s = decoded(p, get, files, edits)
		s.resolve()
		s.check(p)
		return p
	}
	p := check(nil)
	p.Advise(check)
	if err := p.Err(); err != nil {
		return nil, err
	}
	s.warn(p)
	s.warnings, s.first = p.Warnings(), p.FirstWarnings()
	return s, nil
}

// decoded returns the stack as written, after some edits, with the defaults that depend on nothing else.
func decoded(p *input.Problems, get func(key string) (string, bool), files fs.FS, edits input.Edits) *Stack {
	s, values := &Stack{}, input.Values{}
	for _, key := range Keys() {
		if text, ok := given(get, key); ok {
			values[key] = input.ParseJSON(text)
		}
	}
	if object, ok := values[pedlKey].(map[string]any); ok && len(object) == 0 {
		delete(values, pedlKey) // Pulumi.yaml declares {} for stacks without PEDL
	} else {
		withoutB(object)
	}
	// Manifests come first, because they may contain a key that the stack file leaves out.
	jobs, nats := input.ReadManifests(p,
		input.Located{At: field.NewPath(jobsKey), Value: values[jobsKey]},
		input.Located{At: field.NewPath(natsKey), Value: values[natsKey]}, files)
	for _, f := range keyFields() {
		if missing := f.Tag.Get("missing"); missing != "" && values[keyOf(f)] == nil {
			p.Missing(field.NewPath(keyOf(f)), "%s", missing)
		}
	}
	values[natsKey], values[jobsKey] = nats, jobs
	for path, value := range edits {
		values.Set(path.String(), value)
	}
	for _, f := range keyFields() {
		input.Decode(p, field.NewPath(keyOf(f)), values[keyOf(f)], reflect.ValueOf(s).Elem().FieldByIndex(f.Index).Addr().Interface())
	}
	for i := range s.Jobs {
		s.Jobs[i].at = field.NewPath(jobsKey).Index(i)
	}
	return s
}

// given returns the value of a key, unless it is empty.
func given(get func(key string) (string, bool), key string) (string, bool) {
	text, ok := get(key)
	return text, ok && text != "" && text != "null"
}

//go:embed absent.yaml
var absentYAML []byte

// absent says what to write instead of fields that people look for.
var absent = sync.OnceValue(func() map[string]string {
	var objects map[string]map[string]string
	if err := yaml.UnmarshalStrict(absentYAML, &objects); err != nil {
		panic(fmt.Sprintf("config/absent.yaml: %v", err))
	}
	fields := map[string]string{}
	for object, rows := range objects {
		for names, say := range rows {
			say = strings.Replace("does not exist; "+say, "; because", ", because", 1)
			for name := range strings.FieldsSeq(names) {
				for _, kind := range Kinds() {
					fields[strings.Replace(object, KindNNWorker.Field, kind.Field, 1)+"."+name] = say
				}
			}
		}
	}
	return fields
})

// resolve fills in the defaults that one topic takes from another. Each topic has its own defaults by then.
func (s *Stack) resolve() {
	if !s.existing() && s.Cluster.SystemPool.Nodes == 0 {
		s.Cluster.SystemPool.Nodes = max(2, Pool{Zones: s.Cluster.Zones}.ZoneCount())
	}
	s.Images.resolve(&s.Site)
	s.NVIDIADriver.resolve()
	s.NATS.resolve(&s.Site)
	s.Queue.resolve()
	for i := range s.Jobs {
		s.Jobs[i].resolve()
		if s.HasQueues() && s.Jobs[i].Queue != "" && s.Jobs[i].Priority == "" {
			s.Jobs[i].Priority = DefaultPriority
		}
	}
	s.resolvePools()
	s.Cluster.Network.resolve(s.addresses()) // the pools determine the ranges
	for i := range s.Storage {
		s.Storage[i].resolve(&s.Site)
	}
	s.resolveContracts()
	s.dropNATSVariables()
	if s.PEDL != nil {
		s.PEDL.resolve(&s.Site, s.Pools())
	}
	s.labelAgentPools()
}

// check reports the problems of a stack whose defaults are set.
func (s *Stack) check(p *input.Problems) {
	if s.existing() {
		s.checkExistingCluster(p)
	} else {
		input.Form(p, field.NewPath(projectKey), "project", s.Project)
		s.Cluster.check(p, field.NewPath(clusterKey), s.addresses())
		s.checkSystemPool(p)
	}
	s.MachineTypes.check(p, field.NewPath(MachineTypesKey))
	s.checkPools(p)
	s.checkDriver(p)
	s.Images.check(p, field.NewPath(imagesKey), &s.Site)
	s.Operator.check(p, field.NewPath(operatorKey), s.UsesOperator())
	checkVolumeList(p, field.NewPath(storageKey), s.Storage, &s.Site, s.usersOf)
	s.checkNATS(p)
	s.checkJobs(p)
	s.checkQueues(p)
	s.checkPEDL(p)
	if p.None() {
		s.checkCapacity(p)
	}
	if p.None() {
		s.checkQuotas(p)
	}
}

// Warnings returns the warnings about a valid stack, as PATH: TEXT.
func (s *Stack) Warnings() []string { return s.warnings }

// FirstWarnings returns the warnings that matter only until the first `pulumi up` has succeeded.
func (s *Stack) FirstWarnings() []string { return s.first }

// warn adds the warnings about a valid stack.
func (s *Stack) warn(p *input.Problems) {
	for _, v := range s.StoredVolumes() {
		if v.DeletesData() {
			p.Warn(v.Path, "`pulumi destroy` deletes %s with all %s, as the stack file says", v.Source(), v.Contents)
		}
	}
	s.warnOfPools(p)
	s.warnOfPoolLists(p)
	s.warnOfPEDL(p)
	s.warnOfJobs(p)
}

// Source is the configuration of a stack. A pulumi.Context implements it.
type Source interface {
	// GetConfig returns the decrypted value of a key: a string as it is, and anything else as JSON.
	GetConfig(key string) (string, bool)
	// IsConfigSecret reports whether anything in the value of a key is a secret.
	IsConfigSecret(key string) bool
}

// CheckSecrets refuses passwords and keys that are not Pulumi secrets, and Pulumi secrets where the cluster or the
// state would hold them in plain text. Pulumi reports only whether a key contains a secret, so CheckSecrets reads from
// the stack file where. For values from elsewhere, like an environment of Pulumi ESC, it relies on the whole key.
func CheckSecrets(source Source, file input.StackFile) error {
	p := &input.Problems{}
	for _, f := range keyFields() {
		key := keyOf(f)
		if text, ok := given(source.GetConfig, key); ok {
			input.CheckSecrets(p, field.NewPath(key), input.ParseJSON(text), file.Config[key], f.Type, source.IsConfigSecret(key))
		}
	}
	return p.Err()
}
