#!/bin/sh
# overhead.sh [PAIRS [FUNCTIONS]]: how much longer a gcc compile of 3,000
# generated functions takes while it is recorded (method root), as interleaved
# pairs: median and quartiles of the ratio, and the ratio of the least, of wall
# time, of all processor time (recorder included) and of the children's. With
# HUGELAB_OVERHEAD_WITH=perf it is perf record of the same events. Needs root, gcc
# and go. Run it on a machine that does nothing else.
set -eu
cd "$(dirname "$0")/.."
pairs=${1:-15}
export HUGELAB_OVERHEAD_PAIRS="$pairs" HUGELAB_OVERHEAD_FUNCTIONS="${2:-3000}"
exec go test -run - -bench RecordOverhead -benchtime 1x ./internal/record
