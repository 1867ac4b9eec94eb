package input

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type strategy string

type upgrade struct {
	Strategy strategy `json:"strategy" default:"SURGE" enum:"SURGE,BLUE_GREEN"`
	MaxSurge int      `json:"maxSurge" default:"1" min:"0"`
	Soak     int      `json:"soak" default:"3600"`
}

type embedded struct {
	Image string `json:"image" default:"nats"`
}

type inner struct {
	Type string `json:"type" enum:"ext4,xfs"`
	Size int    `json:"size" default:"3"`
}

type outer struct {
	embedded  `json:",inline"`
	Name      string             `json:"name,omitempty"`
	Enabled   bool               `json:"enabled" default:"true"`
	Memory    resource.Quantity  `json:"memory" default:"1Gi"`
	Effect    corev1.TaintEffect `json:"effect,omitempty" enum:"NoSchedule,NoExecute"`
	Parts     []string           `json:"parts" default:"POD,HPA" enum:"POD,HPA,DCGM"`
	Days      *int               `json:"days" default:"7"`
	Price     float64            `json:"price" default:"1.5"`
	Upgrade   upgrade            `json:"upgrade"`
	Inner     *inner             `json:"inner,omitempty"`
	List      []inner            `json:"list,omitempty"`
	ByName    map[string]inner   `json:"byName,omitempty"`
	Password  Secret             `json:"password,omitempty"`
	Certified *struct {
		Key Secret `json:"key"`
	} `json:"certified,omitempty"`
	Any       map[string]any  `json:"any,omitempty"`
	Volumes   []corev1.Volume `json:"volumes,omitempty"`
	LocalSSDs int             `json:"localSsdCount,omitempty"`
}

func decoded(t *testing.T, text string) (outer, *Problems) {
	t.Helper()
	var o outer
	p := &Problems{}
	Decode(p, field.NewPath("persia:key"), ParseJSON(text), &o)
	return o, p
}

func TestDefaults(t *testing.T) {
	o, p := decoded(t, `{"name": "a"}`)
	require.NoError(t, p.Err())
	assert.Equal(t, outer{
		embedded: embedded{Image: "nats"}, Name: "a", Enabled: true, Memory: resource.MustParse("1Gi"),
		Parts: []string{"POD", "HPA"}, Days: new(7), Price: 1.5,
		Upgrade: upgrade{Strategy: "SURGE", MaxSurge: 1, Soak: 3600},
	}, o)

	var alone outer
	Defaults(&alone)
	assert.Equal(t, 3600, alone.Upgrade.Soak)
}

func TestWrittenWins(t *testing.T) {
	o, p := decoded(t, `{"name": "a", "enabled": false, "memory": 2, "effect": "NoExecute", "parts": [], "days": 0, "price": 2,
		"upgrade": {"strategy": "BLUE_GREEN", "maxSurge": 0}, "inner": {"type": "xfs"}, "list": [{"type": "ext4", "size": 5}, {"type": "xfs"}],
		"byName": {"b": {"type": "ext4"}}, "image": "mine", "password": "hunter2", "volumes": [{"name": "v", "emptyDir": {}}]}`)
	require.NoError(t, p.Err())
	assert.False(t, o.Enabled)
	assert.Equal(t, int64(2), o.Memory.Value())
	assert.Equal(t, []string{}, o.Parts)
	assert.Equal(t, 0, *o.Days)
	assert.Equal(t, upgrade{"BLUE_GREEN", 0, 3600}, o.Upgrade)
	assert.Equal(t, &inner{"xfs", 3}, o.Inner)
	assert.Equal(t, []inner{{"ext4", 5}, {"xfs", 3}}, o.List)
	assert.Equal(t, map[string]inner{"b": {"ext4", 3}}, o.ByName)
	assert.Equal(t, "mine", o.Image)
	assert.Equal(t, "hunter2", string(o.Password))
	assert.NotContains(t, fmt.Sprintf("%v %#v", o, o), "hunter2")

	path := field.NewPath("persia:key")
	assert.True(t, p.Given(path.Child("upgrade", "maxSurge")))
	assert.False(t, p.Given(path.Child("upgrade", "soak")))
}

// TestNothingWritten checks that a null and an empty string count as omitted.
func TestNothingWritten(t *testing.T) {
	o, p := decoded(t, `{"upgrade": null, "enabled": null, "parts": null, "image": "", "inner": null}`)
	require.NoError(t, p.Err())
	assert.Equal(t, 1, o.Upgrade.MaxSurge)
	assert.True(t, o.Enabled)
	assert.Equal(t, []string{"POD", "HPA"}, o.Parts)
	assert.Equal(t, "nats", o.Image)
	assert.Nil(t, o.Inner)
}

func TestProblems(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no object":           {`[]`, `persia:key: Invalid value: must be an object (it is a list)`},
		"number for a text":   {`{"name": 3}`, `persia:key.name: Invalid value: 3: must be a string; put it in quotes`},
		"text for a bool":     {`{"enabled": "yes"}`, `persia:key.enabled: Invalid value: "yes": must be true or false, without quotes`},
		"text for an integer": {`{"days": "7"}`, `persia:key.days: Invalid value: "7": must be an integer, without quotes`},
		"fraction":            {`{"days": 1.5}`, `persia:key.days: Invalid value: 1.5: must be an integer, without quotes`},
		"text for a number":   {`{"price": "2"}`, `persia:key.price: Invalid value: "2": must be a number, without quotes`},
		"zero for a default":  {`{"localSsdCount": 0}`, `persia:key.localSsdCount: Invalid value: 0: must be at least 1; omit it for the default`},
		"zero in an object":   {`{"upgrade": {"soak": 0}}`, `persia:key.upgrade.soak: Invalid value: 0: must be at least 1; omit it for the default`},
		"quantity":            {`{"memory": "2 GB"}`, `persia:key.memory: Invalid value: "2 GB": must be a quantity like 80, 500m or 600Gi, without spaces`},
		"misspelt field":      {`{"namee": "a"}`, `persia:key.namee: unknown field; did you mean name?`},
		"unknown field":       {`{"inner": {"colour": "a", "type": "xfs"}}`, `persia:key.inner.colour: unknown field; the fields here are size, type`},
		"capital letter":      {`{"Name": "a"}`, `persia:key.Name: unknown field; did you mean name?`},
		"field of Kubernetes": {`{"volumes": [{"name": "a", "emptyDri": {}}]}`, `persia:key.volumes[0].emptyDri: unknown field; did you mean emptyDir?`},
		"field of an object that has a name": {`{"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"labels": {}}}}]}`,
			`persia:key.volumes[0].ephemeral.volumeClaimTemplate.labels: unknown field; the fields here are metadata, spec`},
		"enumeration":             {`{"upgrade": {"strategy": "SUGRE"}}`, `persia:key.upgrade.strategy: Invalid value: "SUGRE": must be SURGE or BLUE_GREEN`},
		"optional enumeration":    {`{"effect": "Never"}`, `persia:key.effect: Invalid value: "Never": must be NoSchedule or NoExecute`},
		"required enumeration":    {`{"inner": {}}`, `persia:key.inner.type: Required value: write ext4 or xfs`},
		"enumeration in a list":   {`{"parts": ["POD", "GPU"]}`, `persia:key.parts[1]: Invalid value: "GPU": must be POD, HPA or DCGM`},
		"enumeration by name":     {`{"byName": {"b": {"type": "fat"}}}`, `persia:key.byName[b].type: Invalid value: "fat": must be ext4 or xfs`},
		"undecodable enumeration": {`{"inner": {"type": 3}}`, `persia:key.inner.type: Invalid value: 3: must be a string; put it in quotes`},
		"null in a list":          {`{"parts": ["POD", null]}`, `persia:key.parts[1]: Required value: it is null; write a value, or remove it`},
		"null by name":            {`{"byName": {"b": null}}`, `persia:key.byName[b]: Required value: it is null; write a value, or remove it`},
		"secret":                  {`{"password": 12345}`, `persia:key.password: Invalid value: must be a string; put it in quotes`},
		"required secret":         {`{"certified": {}}`, `persia:key.certified.key: Required value: write it with pulumi config set --secret --path 'persia:key.certified.key'`},
		"secret object":           {`{"certified": "12345"}`, `persia:key.certified: Invalid value: must be an object`},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := decoded(t, test.text)
			p.Advise(func(Edits) *Problems { return &Problems{} })
			assert.EqualError(t, p.Err(), "stack configuration: 1 problem\n"+test.want)
		})
	}
}

// TestTextWithoutQuotes checks that text other than JSON is a string.
func TestTextWithoutQuotes(t *testing.T) {
	assert.Equal(t, "{a", ParseJSON("{a"))
	assert.Equal(t, "1 2", ParseJSON("1 2"))
	assert.Nil(t, ParseJSON("null"))
}
