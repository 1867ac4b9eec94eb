// Package volumespec is what a stack file says of storage: types, defaults and rules.
//
// A [Volume] has one [Source]. Each kind of source is one type in one file, which
// checks and completes what is written, names the storage, and says what the stack
// creates and keeps. What a source has to know of other topics arrives as a [Context]
// and as [Users].
package volumespec
