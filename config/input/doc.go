// Package input reads the text of stack files and of the manifests that their jobs name, decodes it into Go values,
// and collects problems. Each problem names its path as the user wrote it, the value, and the remedy.
//
// Decoding is strict, unlike in encoding/json, and reports all problems with their paths. The tags
// of fields control it:
//
//   - json gives the name, as for encoding/json. A field with omitempty is optional.
//   - default:"…" is the value of a field that the user omits, or the elements of a list
//     separated by commas. It applies even if the user omits the object around the field,
//     unless that object is a nil pointer.
//   - enum:"A,B" lists the only values of a string, or of each string of a list. See [Listed].
//   - min:"1" and max:"9" are the bounds of an integer. Of an optional one, 0 means the default
//     unless min is 0.
//   - form names what a string or an object has to be, like a label or a host.
//   - unique:"true" allows each element of a list once, and unique:"name" each name of its elements.
package input
