#!/usr/bin/env bash
# Before a run: makes sure that everything it needs is there. INFRA_ID names the run, TAP_GROUP the group.
# Nothing has to be started: the simulated databases are part of the daemon, which each run starts for itself.
. "$(dirname "$0")/common.bash"
need_infra_id
need_group
need_runner
"${RUNNER[@]}" --check
mkdir -p "$RUNS"
