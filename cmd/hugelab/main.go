// Command hugelab says what huge pages would do for a program on a machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/hugelab/hugelab/internal/calibrate"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/lab"
	"github.com/hugelab/hugelab/internal/record"
)

func main() {
	kernel.Guardian() // as the next: in the processes that the package starts it does not return
	lab.Decoy()
	record.Stub() // in the process that becomes the recorded program this does not return
	calibrate.Helper()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal ends the work in good order, the second ends the program
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
