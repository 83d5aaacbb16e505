#!/usr/bin/env bash
# The shared part of .github/workflows/CI-cluster-simulator.yml: which groups there are, and one build for all of them.
#
#   cluster-simulator-ci.bash groups       the groups of groups.json whose names begin with cluster_sim_, as a JSON list
#   cluster-simulator-ci.bash build DIR    builds testall and puts the daemon, the runner and the groups' binaries into DIR
#   cluster-simulator-ci.bash verify DIR   whether DIR has all of them, unchanged, from this commit
#
# The other scripts use such a directory when POINTSMAN_BUILD names it.
. "$(dirname "$0")/common.bash"

REGISTRY=$WORKSPACE/groups/groups.json

groups() {
    python3 - "$REGISTRY" <<'PYTHON'
import json, sys
registry = json.load(open(sys.argv[1]))
groups = {group for groups in registry.values() for group in groups if group.startswith("cluster_sim_")}
print(json.dumps(sorted(groups)))
PYTHON
}

binaries() {
    python3 - "$REGISTRY" <<'PYTHON'
import json, sys
registry = json.load(open(sys.argv[1]))
for name, groups in sorted(registry.items()):
    if any(group.startswith("cluster_sim_") for group in groups):
        print(name)
PYTHON
}

commit() {
    git -C "$WORKSPACE" rev-parse HEAD
}

build() {
    local files
    make -C "$WORKSPACE" testall
    mapfile -t files < <(binaries)
    files+=(pointsman tap-runner)
    mkdir -p "$1"
    (cd "$WORKSPACE/target/testall/debug" && cp -t "$1" "${files[@]}")
    commit >"$1/COMMIT"
    (cd "$1" && sha256sum COMMIT "${files[@]}" >SHA256SUMS)
}

verify() {
    local name
    [ -f "$1/SHA256SUMS" ] || fail "$1 holds no build"
    [ "$(cat "$1/COMMIT")" = "$(commit)" ] || fail "$1 was built from another commit"
    (cd "$1" && sha256sum --check --strict --quiet SHA256SUMS) || fail "$1 is not as it was built"
    for name in pointsman tap-runner $(binaries); do
        [ -x "$1/$name" ] || fail "$1/$name is missing"
    done
}

case "${1:-} $#" in
    "groups 1") groups ;;
    "build 2" | "verify 2") "$1" "$(realpath -m -- "$2")" ;;
    *) fail "usage: ${0##*/} groups | build DIR | verify DIR" ;;
esac
