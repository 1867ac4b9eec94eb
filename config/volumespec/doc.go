// Package volumespec defines the storage in a stack file: types, defaults and rules.
//
// A [Volume] has one [Source]. Each kind of source is a type in a file of its own, which
// resolves and checks its fields, names the storage, and says what the stack creates and
// keeps. A [Context] and [Users] describe the other topics to sources.
package volumespec
