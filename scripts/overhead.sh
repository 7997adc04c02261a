#!/bin/sh
# overhead.sh [PAIRS]: how much longer a gcc compile of 3,000 generated
# functions takes while it is recorded (method root), as interleaved pairs.
# Needs root, gcc and go. Run it on a machine that does nothing else.
set -eu
cd "$(dirname "$0")/.."
pairs=${1:-15}
HUGELAB_OVERHEAD_PAIRS=$pairs exec go test -run - -bench RecordOverhead -benchtime 1x ./internal/record
