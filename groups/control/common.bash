# shellcheck shell=bash
# What the scripts of this directory have in common; not run by itself.
set -euo pipefail
# With it, cd may go elsewhere, and says where.
unset CDPATH

WORKSPACE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# Where `make test_rds_bgd` leaves the daemon, the runner and the binaries.
BUILD=${POINTSMAN_BUILD:-$WORKSPACE/target/sim/debug}

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 2
}

# Sets RUNS, the directory that everything with this INFRA_ID is in: each run makes a numbered one inside.
need_infra_id() {
    [[ ${INFRA_ID:-} =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] ||
        fail "INFRA_ID must be a name of letters, digits, '.', '_' and '-', such as rds-bgd-1; export it first"
    RUNS=$WORKSPACE/groups/logs/$INFRA_ID
}

need_group() {
    [ -n "${TAP_GROUP:-}" ] ||
        fail "TAP_GROUP must name a group of groups/groups.json, such as cluster_sim_rds_bgd-g1; export it first"
}

# Sets RUNNER, the runner's command without options.
need_runner() {
    [ -x "$BUILD/tap-runner" ] || fail "$BUILD/tap-runner is missing; build it with: make test_rds_bgd"
    # shellcheck disable=SC2034 # used by the scripts
    RUNNER=("$BUILD/tap-runner" --daemon "$BUILD/pointsman" --binaries "$BUILD" --group "$TAP_GROUP"
        --groups-dir "$WORKSPACE/groups" --logs "$RUNS")
}
