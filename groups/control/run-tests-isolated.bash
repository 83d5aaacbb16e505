#!/usr/bin/env bash
# Runs the binaries of TAP_GROUP against a daemon of their own, in a network and mount namespace where those can be made.
# Options are tap-runner's: --repeat N, --only NAME, --timeout SECS, --junit FILE, --no-isolation.
. "$(dirname "$0")/common.bash"
need_infra_id
need_group
[ -d "$RUNS" ] || fail "nothing is prepared for INFRA_ID=$INFRA_ID; run ensure-infras.bash first"
need_runner
# In place of this shell, so that a signal to it reaches the runner.
exec "${RUNNER[@]}" "$@"
