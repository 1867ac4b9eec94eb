// Package process finds, identifies and ends processes of this machine that
// outlive the program that started them.
//
// A process id alone names nothing: ids are used again, after a reboot at the
// latest. A [Process] therefore carries its start time as well, and nothing in
// this package signals a process whose start time differs from the recorded
// one.
package process
