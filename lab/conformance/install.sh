#!/usr/bin/env bash
# Installs the client libraries of the conformance program, or the tools of lab/admin, at the versions named here, into a directory of
# the cache: a Python environment and npm's modules. Safe to run again: what is complete is left alone.
#
#   lab/conformance/install.sh [drivers]  prints the directory as its last line
#   lab/conformance/install.sh tools      the same for operators' tools
#
# Exit status: 0 they are there; 77 this machine cannot have them (one line says why); 1 something went wrong.
set -euo pipefail

case ${1:-drivers} in
    drivers)
        name=conformance-clients
        python_packages=(PyMySQL==1.2.4 cryptography==46.0.3 mysql-connector-python==26.10.0 mysqlclient==2.3.2)
        node_packages=(mysql2@3.24.6)
        collections=()
        loads=MySQLdb
        ;;
    tools)
        name=admin-tools
        python_packages=(dolphie==6.18.0 pyte==0.8.2 PyMySQL==1.2.4 ansible-core==2.19.14)
        node_packages=()
        # Of this large package one collection of modules is kept, in ansible_collections.
        collections=(ansible==12.3.0)
        loads=pyte
        ;;
    *)
        echo "usage: lab/conformance/install.sh [drivers|tools]" >&2
        exit 2
        ;;
esac
root=${XDG_CACHE_HOME:-$HOME/.cache}/pointsman/$name
log=$(mktemp)
trap 'rm -f "$log"' EXIT

say() { printf '%s: [%3d s] %s\n' "$name" "$SECONDS" "$*" >&2; }
cannot() { printf '%s: cannot install them here: %s\n' "$name" "$*" >&2; exit 77; }

quietly() { # quietly WHAT COMMAND...: its output is shown only when it fails
    local what=$1
    shift
    say "$what"
    "$@" >"$log" 2>&1 </dev/null || {
        tail -n 15 "$log" >&2
        printf '%s: FAILED: %s\n' "$name" "$what" >&2
        exit 1
    }
}

need_tools() {
    local tool
    for tool in python3 node npm pkg-config cc; do
        command -v "$tool" >/dev/null || install_packages
        command -v "$tool" >/dev/null || cannot "no $tool"
    done
    # mysqlclient is compiled against MariaDB's client library.
    pkg-config --exists libmariadb || install_packages
    pkg-config --exists libmariadb || cannot "no headers of libmariadb (Debian's package libmariadb-dev)"
}

install_packages() {
    local node=()
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    # A Node.js from elsewhere brings npm with it, and Debian's npm would conflict with it.
    { command -v node && command -v npm; } >/dev/null || node=(nodejs npm)
    quietly "updating the package lists" apt-get -o DPkg::Lock::Timeout=300 update
    quietly "installing headers and tools" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
        install -y --no-install-recommends libmariadb-dev pkg-config gcc libc6-dev python3-dev python3-venv \
        "${node[@]}"
}

# The list of versions is written last: an interrupted run leaves nothing that looks finished.
install_libraries() {
    rm -rf "$root"
    mkdir -p "$root/node"
    quietly "creating a Python environment" python3 -m venv "$root/python"
    quietly "installing the Python packages" "$root/python/bin/python" -m pip install --quiet \
        --disable-pip-version-check "${python_packages[@]}"
    [ ${#node_packages[@]} = 0 ] || quietly "installing the Node.js driver" npm install --prefix "$root/node" \
        --no-audit --no-fund --no-package-lock "${node_packages[@]}"
    [ ${#collections[@]} = 0 ] || install_collection
    wanted >"$root/versions"
}

install_collection() {
    quietly "fetching Ansible's collections" "$root/python/bin/python" -m pip download --quiet \
        --disable-pip-version-check --no-deps --only-binary :all: --dest "$root/download" "${collections[@]}"
    quietly "unpacking the collection community.proxysql" "$root/python/bin/python" -c '
import pathlib, sys, zipfile
[wheel] = pathlib.Path(sys.argv[1], "download").glob("*.whl")
archive = zipfile.ZipFile(wheel)
wanted = [name for name in archive.namelist() if name.startswith("ansible_collections/community/proxysql/")]
archive.extractall(sys.argv[1], wanted)' "$root"
    rm -rf "$root/download"
}

wanted() { printf '%s\n' "${python_packages[@]}" "${node_packages[@]}" "${collections[@]}"; }
have_all() { [ "$(cat "$root/versions" 2>/dev/null)" = "$(wanted)" ] && "$root/python/bin/python" -c "import $loads" 2>/dev/null; }

mkdir -p "$(dirname "$root")"
exec 9>"$root.lock"
flock -w 600 9 || { printf '%s: FAILED: another installation is not ending\n' "$name" >&2; exit 1; }
if ! have_all; then
    need_tools
    install_libraries
    have_all || { printf '%s: FAILED: what was installed does not load\n' "$name" >&2; exit 1; }
fi
say "all there"
echo "$root"
