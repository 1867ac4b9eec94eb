// Package config is what a stack file may say: plain types, strict decoding,
// defaults and validation.
//
// A stack is valid or it is refused as a whole: [Load] reports every problem at
// once, each with its path in the stack file, the value found there and what to
// write instead, and nothing has been registered by then.
package config
