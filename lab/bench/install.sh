#!/usr/bin/env bash
# Installs what `make bench` measures against and with, on a Debian machine, as root: sysbench and HAProxy from the
# machine's own release, MySQL Router beside the MySQL 9.7 of lab/install-servers.sh. Safe to run again.
#
# Exit status: 0 all is there; 77 this machine cannot have it; 1 something went wrong.
set -euo pipefail
cd "$(dirname "$0")/../.."

mysql_root=${POINTSMAN_MYSQL_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/pointsman/mysql-sid}
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

lab/install-servers.sh

missing=()
command -v sysbench >/dev/null || missing+=(sysbench)
command -v haproxy >/dev/null || missing+=(haproxy)
if [ ${#missing[@]} -gt 0 ]; then
    echo "bench: installing ${missing[*]}"
    apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ ! -x "$mysql_root/usr/bin/mysqlrouter" ]; then
    echo "bench: installing MySQL Router"
    # A mirror may serve a snapshot whose date is past; the packages in it are signed all the same.
    chroot "$mysql_root" apt-get -q -o Acquire::Check-Valid-Until=false update >/dev/null
    chroot "$mysql_root" apt-get -q install -y --no-install-recommends mysql-router >/dev/null
    chroot "$mysql_root" apt-get clean
    rm -rf "$mysql_root"/var/lib/apt/lists/*
fi
echo "bench: $(sysbench --version), $(haproxy -v | head -n 1), $(chroot "$mysql_root" mysqlrouter --version | head -n 1)"
