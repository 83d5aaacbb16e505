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

# registry groups|binaries: those of groups.json, by the groups whose names begin with cluster_sim_.
registry() {
    python3 - "$REGISTRY" "$1" <<'PYTHON'
import json, sys
path, wanted = sys.argv[1:]
try:
    # As pairs: in a dict the first of two entries with one name would be lost.
    entries = json.load(open(path), object_pairs_hook=list)
    names = [name for name, groups in entries]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{min(twice)!r} is there twice")
except (OSError, ValueError, TypeError) as error:
    sys.exit(f"{path}: {error}")
members = [(name, group) for name, groups in entries for group in groups if group.startswith("cluster_sim_")]
if wanted == "groups":
    print(json.dumps(sorted({group for name, group in members})))
else:
    print(*sorted({name for name, group in members}), sep="\n")
PYTHON
}

commit() {
    git -C "$WORKSPACE" rev-parse HEAD
}

build() {
    local binaries files name
    binaries=$(registry binaries)
    make -C "$WORKSPACE" testall
    mapfile -t files <<<"$binaries"
    files+=(pointsman tap-runner)
    mkdir -p "$1"
    for name in "${files[@]}"; do
        # Beside the daemon, or where cargo puts examples.
        cp "$WORKSPACE/target/testall/debug/$name" "$1" 2>/dev/null ||
            cp "$WORKSPACE/target/testall/debug/examples/$name" "$1"
    done
    commit >"$1/COMMIT"
    (cd "$1" && sha256sum COMMIT "${files[@]}" >SHA256SUMS)
}

verify() {
    local binaries name
    [ -f "$1/SHA256SUMS" ] || fail "$1 holds no build"
    [ "$(cat "$1/COMMIT")" = "$(commit)" ] || fail "$1 was built from another commit"
    (cd "$1" && sha256sum --check --strict --quiet SHA256SUMS) || fail "$1 is not as it was built"
    binaries=$(registry binaries)
    for name in pointsman tap-runner $binaries; do
        [ -x "$1/$name" ] || fail "$1/$name is missing"
    done
}

case "${1:-} $#" in
    "groups 1") registry groups ;;
    "build 2" | "verify 2") "$1" "$(realpath -m -- "$2")" ;;
    *) fail "usage: ${0##*/} groups | build DIR | verify DIR" ;;
esac
