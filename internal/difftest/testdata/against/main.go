// Against holds the model that it was built with to a file of answers, and says
// after how many programs they differ and in what. TestMutations builds it with
// faults planted in the model.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hugelab/hugelab/internal/difftest"
)

func main() {
	n := 0
	defer func() {
		if p := recover(); p != nil {
			fmt.Println(n+1, "a panic:", p)
		}
	}()
	file, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	o := difftest.Options{MaxMismatches: 1, OnProgress: func(r *difftest.Report) { n = r.Programs }}
	rep, err := difftest.CheckAgainst(context.Background(), o, file)
	switch {
	case err != nil:
		fmt.Println(n+1, "an error:", err)
	case len(rep.Mismatches) == 0:
		fmt.Println(rep.Programs, "nothing")
	default:
		fmt.Println(rep.Programs, rep.Mismatches[0].What)
	}
}
