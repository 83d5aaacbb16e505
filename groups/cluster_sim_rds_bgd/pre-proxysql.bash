#!/usr/bin/env bash
# Before the first Admin write: a short wait, at most 10 s, until the admin port and the simulator accept connections.
set -u
. "$(dirname "$0")/env.sh"

host="${TAP_ADMINHOST:-127.0.0.1}"
for port in "${TAP_ADMINPORT:-6032}" ${PROXYSQL_READY_PORTS_EXTRA}; do
    deadline=$((SECONDS + 10))
    until (exec 3<>"/dev/tcp/${host}/${port}") 2>/dev/null; do
        if [ "${SECONDS}" -ge "${deadline}" ]; then
            echo "nothing accepts connections on ${host}:${port}" >&2
            exit 1
        fi
        sleep 0.1
    done
done
