#!/usr/bin/env bash
# After the runs of INFRA_ID: ends what is still running of them and removes the daemons' data. Their logs are kept.
. "$(dirname "$0")/common.bash"
need_infra_id

# A runner that is asked to end first stops its daemon, which may take a while.
GRACE_SECONDS=60

# is_process PID FILE ENTRY: whether it has that entry in that file of /proc. If not it has ended, and the number may be another's.
is_process() {
    grep -qzxF -- "$3" "/proc/$1/$2" 2>/dev/null
}

# stop WHOM PID FILE ENTRY: WHOM is the process, or its group, as kill wants it.
stop() {
    local signal deadline
    for signal in TERM KILL; do
        is_process "$2" "$3" "$4" || return 0
        echo "stopping process $2 with SIG$signal"
        kill -s "$signal" -- "$1" 2>/dev/null || true
        deadline=$((SECONDS + GRACE_SECONDS))
        while is_process "$2" "$3" "$4" && [ "$SECONDS" -lt "$deadline" ]; do
            sleep 0.1
        done
    done
    ! is_process "$2" "$3" "$4" || fail "process $2 does not end"
}

# The runner first: it stops the others, if it still can. Binaries and daemon lead process groups of their own.
stop_run() {
    local pid file
    for file in "$1/runner.pid" "$1"/*.*.pid "$1/daemon.pid"; do
        # Whoever wrote it may remove it meanwhile.
        pid=$(cat "$file" 2>/dev/null) || continue
        case ${file##*/} in
            runner.pid) stop "$pid" "$pid" cmdline "$RUNS" ;;
            daemon.pid) stop "-$pid" "$pid" cmdline "$1/data" ;;
            *) stop "-$pid" "$pid" environ "TAP_WORKDIR=$1" ;;
        esac
        rm -f "$file"
    done
}

shopt -s nullglob
for run in "$RUNS"/*/; do
    run=${run%/}
    stop_run "$run"
    rm -rf "$run/data"
done
if rmdir "$RUNS" 2>/dev/null || [ ! -e "$RUNS" ]; then
    echo "no runs of $INFRA_ID"
else
    echo "logs are in $RUNS"
fi
