#!/bin/sh
# overhead.sh [PAIRS [FUNCTIONS]]: how much longer a gcc compile of 3,000
# generated functions takes while it is recorded (method root), as interleaved
# pairs: median and quartiles of the ratio of wall time, and of the command's
# own processor time. Needs root, gcc and go. Run it on a machine that does
# nothing else.
set -eu
cd "$(dirname "$0")/.."
pairs=${1:-15}
export HUGELAB_OVERHEAD_PAIRS="$pairs" HUGELAB_OVERHEAD_FUNCTIONS="${2:-3000}"
exec go test -run - -bench RecordOverhead -benchtime 1x ./internal/record
