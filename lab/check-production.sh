#!/bin/sh
# Checks that a binary contains nothing of the blue/green simulator: none of its names is in the file, and the daemon answers
# none of its statements.
#
#   lab/check-production.sh target/release/pointsman
#
# Exit status: 0 clean; 1 it names what it found; 2 no such binary.
set -eu

binary=${1:?usage: lab/check-production.sh BINARY}
[ -f "$binary" ] || { echo "check-production: no such file: $binary" >&2; exit 2; }

found=
# The first covers every control table. Letter case matters: mysql_aws_rds_bgd_hostgroups is a table of production.
for name in RDS_BGD_ READONLY_STATUS 'Automated Test Server' 'simulator: ' 0.0.0.0:3306 \
    rds_bgd_dns_listen bgd-dns-udp sqlite3server-backends; do
    ! grep -qaF -- "$name" "$binary" || found="$found '$name'"
done
if [ -n "$found" ]; then
    echo "check-production: $binary contains the simulator's$found" >&2
    exit 1
fi

binary=$(realpath -- "$binary")
cd "$(dirname -- "$0")/.."
POINTSMAN_PROGRAM=$binary "${CARGO:-cargo}" test --quiet --locked --package pointsman --test production
echo "check-production: $binary contains nothing of the simulator"
