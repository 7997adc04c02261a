// Package predict turns a recording, policies and a machine into a prediction:
// the recording is run once through one model machine a policy, and what each
// machine counted becomes a row.
//
// It predicts page faults, kernel time and memory. It does not predict what
// larger pages save in user mode (fewer TLB misses).
//
// # Order of events
//
//	policies -> one Machine each -> feed: a batch of operations goes to every
//	machine -> rows -> Recommend
//
// The recording streams: nothing is kept of it but the batch at hand, so that
// memory is bounded by what the program had resident, once a policy.
package predict
