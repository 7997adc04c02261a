// Package itree keeps disjoint address ranges in order with the gaps between
// them, so that both "which range holds this address" and "where is the
// highest gap of this length" take logarithmic time.
package itree
