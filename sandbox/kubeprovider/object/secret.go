package object

import "github.com/pulumi/pulumi/sdk/v3/go/common/resource"

// Reveal returns properties without the marks of secrets and outputs. What is
// not known stays so.
func Reveal(properties resource.PropertyMap) resource.PropertyMap {
	if properties == nil {
		return nil
	}
	out := make(resource.PropertyMap, len(properties))
	for key, value := range properties {
		out[key] = revealValue(value)
	}
	return out
}

func revealValue(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return revealValue(v.SecretValue().Element)
	case v.IsOutput() && v.OutputValue().Known:
		return revealValue(v.OutputValue().Element)
	case v.IsOutput():
		return resource.MakeComputed(resource.NewProperty(""))
	case v.IsArray():
		out := make([]resource.PropertyValue, 0, len(v.ArrayValue()))
		for _, element := range v.ArrayValue() {
			out = append(out, revealValue(element))
		}
		return resource.NewProperty(out)
	case v.IsObject():
		return resource.NewProperty(Reveal(v.ObjectValue()))
	default:
		return v
	}
}

// Conceal marks as secret every value that is secret in like. A list that contains a secret becomes
// one as a whole, because its elements may have moved.
func Conceal(properties, like resource.PropertyMap) {
	for key, pattern := range like {
		value, ok := properties[key]
		switch {
		case !ok || value.IsSecret():
		case value.IsObject() && pattern.IsObject():
			Conceal(value.ObjectValue(), pattern.ObjectValue())
		case pattern.ContainsSecrets():
			properties[key] = resource.MakeSecret(value)
		}
	}
}
