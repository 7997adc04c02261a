#!/bin/sh
# calibrate-check.sh [ROUNDS [PROGRAM...]]: calibrate twice and print how far
# the two lie apart; then predict the kernel time of real programs (gcc, sort,
# python) by the first and measure it under each policy, ROUNDS times (default
# 3), interleaved. Needs root, go, gcc, python3 and a machine that does nothing
# else; takes about two minutes a round. Nothing is left behind.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-3}
[ $# -eq 0 ] || shift
programs=${*:-gcc sort python}
policies="now never 16k 64k 256k 1m thp"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
go build -o "$dir/hugelab" ./cmd/hugelab
sh scripts/gen-functions.sh 6000 >"$dir/big.c"
cat >"$dir/dicts.py" <<'PY'
for r in range(3):
    d = {}
    for i in range(1000000):
        d[i] = str(i)
    del d
PY
python3 - "$dir/lines.txt" <<'PY'
import random, sys
random.seed(1)
with open(sys.argv[1], "w") as f:
    for i in range(2000000):
        f.write("%016x %d\n" % (random.getrandbits(64), i))
PY
cat >"$dir/check.py" <<'PY'
import json, os, resource, statistics, subprocess, sys, time

if sys.argv[1] == "--one":
    command = sys.argv[2:]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime)
    sys.exit()

dir, rounds, policies, programs = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(), sys.argv[4].split()
hl = dir + "/hugelab"
commands = {
    "gcc": ["gcc", "-O1", "-c", dir + "/big.c", "-o", "/dev/null"],
    "sort": ["sort", "-S", "400M", "--parallel=1", dir + "/lines.txt", "-o", "/dev/null"],
    "python": ["python3", dir + "/dicts.py"],
}


def run(command):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True).stdout


def calibrate(name):
    begin = time.time()
    out = json.loads(run([hl, "calibrate", "--json", "--out", dir + "/" + name + ".yaml"]))
    print("calibration %s: %.1f s, spread %.1f %%, residual %.1f %%, backing %s, load %.1f" % (
        name, time.time() - begin, 100 * out["spread"], 100 * out["residual"],
        "yes" if any("hypervisor takes" in n for n in out["notes"]) else "no", os.getloadavg()[0]), flush=True)
    return out


def predict(recording, profile):
    command = [hl, "predict"] + ([recording] if recording else []) + ["--json", "--profile", profile]
    for p in policies:
        command += ["--policy", p] if p != "now" else []
    return {p["name"]: p for p in json.loads(run(command))["policies"]}


def apart(a, b):
    return abs(a - b) / min(a, b) if min(a, b) > 0 else 0.0


def measure(program, policy):
    command = [hl, "settings", "apply", "--yes", policy, "--"] if policy != "now" else []
    text = run(command + [sys.executable, __file__, "--one"] + commands[program])
    return float(text.split()[-1])


def main():
    a, b = calibrate("a"), calibrate("b")
    recordings = {"example": ""}
    for p in programs:
        recordings[p] = dir + "/" + p + ".hlr"
        run([hl, "record", "--quiet", "-o", recordings[p], "--"] + commands[p])
    worst, first = 0, {}
    for name, rec in recordings.items():
        x, y = predict(rec, dir + "/a.yaml"), predict(rec, dir + "/b.yaml")
        first[name] = x
        each = {p: apart(x[p]["kernel_seconds"], y[p]["kernel_seconds"]) for p in policies}
        worst = max(worst, *each.values())
        print("two calibrations, kernel time of %s: %s" % (
            name, ", ".join("%s %.1f %%" % (p, 100 * e) for p, e in each.items())))
    print("largest difference in predicted kernel time: %.1f %%" % (100 * worst))
    rows = {r["name"]: r for r in b["rows"]}
    diffs = sorted((apart(r["measured"], rows[r["name"]]["measured"]), r["name"]) for r in a["rows"] if r["name"] in rows)
    print("rows: median difference %.1f %%, largest: %s" % (100 * statistics.median(d for d, _ in diffs), ", ".join(
        "%s %.0f %%" % (n, 100 * d) for d, n in reversed(diffs[-5:]))), flush=True)
    got = {}
    for r in range(rounds):
        for program in programs:
            for policy in policies:
                got.setdefault((program, policy), []).append(measure(program, policy))
        print("round %d of %d, load %.1f" % (r + 1, rounds, os.getloadavg()[0]), file=sys.stderr, flush=True)
    print("\n%-8s %-6s %10s %10s %10s  %-13s %8s" % ("program", "policy", "for memory", "system", "measured", "from - to", "error"))
    bad = 0
    for (program, policy), times in got.items():
        x = first[program][policy]
        m, s = statistics.median(times), x.get("system_seconds", x["kernel_seconds"])
        error = s / m - 1 if m > 0 else 0
        counts = m > 0.3
        bad += counts and abs(error) > 0.2
        print("%-8s %-6s %8.0fms %8.0fms %8.0fms  %4.0f - %-4.0fms %+7.0f%%%s" % (
            program, policy, 1e3 * x["kernel_seconds"], 1e3 * s, 1e3 * m, 1e3 * min(times), 1e3 * max(times),
            100 * error, "" if counts else " (below 0.3 s: ticks are too few)"))
    print("%d rows over 0.3 s are off by more than 20 %%" % bad)


main()
PY
python3 "$dir/check.py" "$dir" "$rounds" "$policies" "$programs"
