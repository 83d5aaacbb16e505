#!/bin/sh
# Checks that a production binary contains nothing of the blue/green simulator: none of its names is in the file.
#
#   lab/check-production.sh target/release/pointsman
#
# Exit status: 0 clean; 1 it names what it found; 2 no such binary.
set -eu

binary=${1:?usage: lab/check-production.sh BINARY}
[ -f "$binary" ] || { echo "check-production: no such file: $binary" >&2; exit 2; }

found=
for name in RDS_BGD_CONTROL RDS_BGD_TOPOLOGY RDS_BGD_PROBE_LOG READONLY_STATUS \
    RDS_BGD_DNS rds_bgd_dns_listen bgd-dns-udp RDS_BGD_BACKEND sqlite3server-backends; do
    ! grep -qaiF -- "$name" "$binary" || found="$found $name"
done
if [ -n "$found" ]; then
    echo "check-production: $binary contains the simulator's$found" >&2
    exit 1
fi
echo "check-production: $binary contains nothing of the simulator"
