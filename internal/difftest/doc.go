// Package difftest asks two executors what the same memory program does and
// holds the answers together, page for page: the model (package mm) and the
// running kernel.
//
// A Program is a policy and steps: map, touch, unmap, fork and so on, over a
// few processes, with addresses relative to named regions. It has a text form
// (docs/programs.md). Every mapping lies at an address that the program alone
// decides, so both sides agree about addresses and only about them.
//
// After every step the two sides show what they have: the errno and the faults
// of the step, the VMAs, what is behind every page, and how far every
// comparable counter moved. Compare finds the first difference, Shrink the
// smallest program that still has one, Generate makes programs from a seed.
//
// Covered is private anonymous memory. Hugetlb and shared anonymous memory are
// not yet.
package difftest
