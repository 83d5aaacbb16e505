#!/usr/bin/env bash
# After the runs of INFRA_ID: ends what is still running of them and removes the daemons' data. Their logs are kept.
. "$(dirname "$0")/common.bash"
need_infra_id

# A runner that is asked to end first stops its daemon, which may take a while.
GRACE_SECONDS=60

# is_process PID ARGUMENT: whether it runs and was started with that argument, so that it is not another one's number by now.
is_process() {
    grep -qzxF -- "$2" "/proc/$1/cmdline" 2>/dev/null
}

# stop PID-FILE ARGUMENT
stop() {
    local pid signal deadline
    [ -f "$1" ] || return 0
    pid=$(<"$1")
    for signal in TERM KILL; do
        is_process "$pid" "$2" || break
        echo "stopping process $pid with SIG$signal"
        kill -s "$signal" "$pid" 2>/dev/null || true
        deadline=$((SECONDS + GRACE_SECONDS))
        while is_process "$pid" "$2" && [ "$SECONDS" -lt "$deadline" ]; do
            sleep 0.1
        done
    done
    ! is_process "$pid" "$2" || fail "process $pid does not end"
    rm -f "$1"
}

shopt -s nullglob
for run in "$RUNS"/*/; do
    run=${run%/}
    stop "$run/runner.pid" "$RUNS"
    # A runner that was killed could not stop it.
    stop "$run/daemon.pid" "$run/data"
    rm -rf "$run/data"
done
if rmdir "$RUNS" 2>/dev/null || [ ! -e "$RUNS" ]; then
    echo "no runs of $INFRA_ID"
else
    echo "logs are in $RUNS"
fi
