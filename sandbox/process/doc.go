// Package process finds, identifies and ends processes of this machine that outlive the program that started them.
//
// A process id alone names nothing: ids are used again. A [Process] therefore carries its start time as
// well, and nothing in this package signals a process with another start time.
package process
