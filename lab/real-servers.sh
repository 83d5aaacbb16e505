#!/usr/bin/env bash
# Starts and stops one MySQL 9.7 and one MariaDB on 127.0.0.1, installed by lab/install-servers.sh.
#
#   lab/real-servers.sh start    fresh and empty databases each time; returns when both answer
#   lab/real-servers.sh stop     stops both and deletes their data
#   lab/real-servers.sh status   what runs, and how to connect
#   lab/real-servers.sh mysql ARGUMENTS...     the MySQL 9.7 client; connects to the running MySQL if not told otherwise
#   lab/real-servers.sh mariadb ARGUMENTS...   the same with MariaDB's client
#
#   POINTSMAN_MYSQL_PORT        default 13306
#   POINTSMAN_MARIADB_PORT      default 13307
#   POINTSMAN_MYSQL_ROOT        where install-servers.sh put MySQL
#   POINTSMAN_REAL_SERVERS_DIR  process ids, logs and MariaDB's data
#                               (default: $XDG_CACHE_HOME/pointsman/real-servers)
#
# Exit status: 0 done; 77 the servers are not installed or cannot run here (one line says why); 1 it failed.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pointsman
mysql_root=${POINTSMAN_MYSQL_ROOT:-$cache/mysql-sid}
state=${POINTSMAN_REAL_SERVERS_DIR:-$cache/real-servers}
mysql_port=${POINTSMAN_MYSQL_PORT:-13306}
mariadb_port=${POINTSMAN_MARIADB_PORT:-13307}
ready_within=90 # seconds, for both: a first start creates its system tables
stop_within=30  # seconds, then the process is killed

# As the chroot sees it: MySQL's data lives inside, named by its port so that several instances can run.
mysql_data=/srv/pointsman-$mysql_port

cannot() { printf 'real-servers: %s\n' "$*" >&2; exit 77; }
fail() { printf 'real-servers: FAILED: %s\n' "$*" >&2; exit 1; }

require_servers() {
    [ "$(id -u)" = 0 ] || cannot "MySQL runs in a chroot, which needs root"
    local missing="run lab/install-servers.sh first"
    [ -x "$mysql_root/usr/sbin/mysqld" ] || cannot "no MySQL in $mysql_root: $missing"
    local program
    for program in mariadbd mariadb mariadb-install-db; do
        command -v "$program" >/dev/null || cannot "MariaDB's $program is not installed: $missing"
    done
}

# The accounts. Only loopback can reach them.
accounts_sql() {
    cat <<SQL
CREATE DATABASE IF NOT EXISTS app;
CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY 'app-secret';
GRANT ALL ON app.* TO 'app'@'%';
CREATE USER IF NOT EXISTS 'monitor'@'%' IDENTIFIED BY 'monitor';
CREATE USER IF NOT EXISTS 'dba'@'%' IDENTIFIED BY 'dba-secret';
GRANT ALL ON *.* TO 'dba'@'%' WITH GRANT OPTION;
SQL
}

mysql_client() { chroot "$mysql_root" /usr/bin/mysql --no-defaults -h127.0.0.1 -P"$mysql_port" "$@"; }
mariadb_client() { mariadb --no-defaults -h127.0.0.1 -P"$mariadb_port" "$@"; }

# A process id from a file is believed only while that process still is the server with that data directory.
running() { # running NAME DATA: prints the process id
    local pid
    pid=$(cat "$state/$1.pid" 2>/dev/null) || return 1
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -- "--datadir=$2" || return 1
    echo "$pid"
}

start_detached() { # start_detached NAME COMMAND...
    local name=$1
    shift
    setsid "$@" >"$state/$name.log" 2>&1 </dev/null &
    echo $! >"$state/$name.pid"
}

start_mysql() {
    rm -rf "${mysql_root:?}$mysql_data"
    mkdir -p "$mysql_root$mysql_data"
    accounts_sql >"$mysql_root$mysql_data.sql"
    # The caller's TMPDIR need not be there inside.
    chroot "$mysql_root" /usr/sbin/mysqld --no-defaults --user=root --initialize-insecure --tmpdir=/tmp \
        --datadir="$mysql_data" >"$state/mysql.log" 2>&1 </dev/null || {
        tail -n 5 "$state/mysql.log" >&2
        fail "MySQL could not create its data directory"
    }
    start_detached mysql chroot "$mysql_root" /usr/sbin/mysqld --no-defaults --user=root --tmpdir=/tmp \
        --datadir="$mysql_data" --init-file="$mysql_data.sql" --socket="$mysql_data.sock" --pid-file="$mysql_data.pid" \
        --bind-address=127.0.0.1 --skip-name-resolve --port="$mysql_port" --mysqlx=0 --secure-file-priv=NULL \
        --server-id=1 --gtid-mode=ON --enforce-gtid-consistency=ON \
        --max-allowed-packet=256M --local-infile=ON --performance-schema=OFF --innodb-flush-log-at-trx-commit=2
}

start_mariadb() {
    local data=$state/mariadb-data
    rm -rf "$data"
    accounts_sql >"$state/mariadb.sql"
    mariadb-install-db --no-defaults --user=root --auth-root-authentication-method=normal --skip-test-db \
        --datadir="$data" >"$state/mariadb.log" 2>&1 </dev/null || {
        tail -n 5 "$state/mariadb.log" >&2
        fail "MariaDB could not create its data directory"
    }
    start_detached mariadb "$(command -v mariadbd)" --no-defaults --user=root \
        --datadir="$data" --init-file="$state/mariadb.sql" --socket="$state/mariadb.sock" --pid-file="$state/mariadb-own.pid" \
        --bind-address=127.0.0.1 --skip-name-resolve --port="$mariadb_port" \
        --max-allowed-packet=256M --local-infile=ON --innodb-flush-log-at-trx-commit=2
}

wait_ready() { # wait_ready NAME CLIENT
    local name=$1 client=$2
    # The time-out is for a port on which someone else listens and says nothing.
    until "$client" --connect-timeout=5 -udba -pdba-secret -e 'SELECT 1' >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$ready_within" ] || ! kill -0 "$(cat "$state/$name.pid")" 2>/dev/null; then
            tail -n 10 "$state/$name.log" >&2
            stop_all
            fail "$name did not become ready"
        fi
        sleep 0.2
    done
}

stop_one() { # stop_one NAME DATA
    local pid deadline=$((SECONDS + stop_within))
    if pid=$(running "$1" "$2"); then
        kill "$pid"
        while running "$1" "$2" >/dev/null; do
            [ "$SECONDS" -lt "$deadline" ] || kill -KILL "$pid" 2>/dev/null || true
            sleep 0.1
        done
        echo "real-servers: stopped $1 (process $pid)"
    fi
    rm -f "$state/$1.pid"
}

stop_all() {
    stop_one mysql "$mysql_data"
    stop_one mariadb "$state/mariadb-data"
    rm -rf "${mysql_root:?}$mysql_data" "$mysql_root$mysql_data".* "$state/mariadb-data" "$state/mariadb.sql"
}

mysql_version() { mysql_client -udba -pdba-secret -BNe 'SELECT VERSION()' 2>/dev/null || echo unknown; }
mariadb_version() { mariadb_client -udba -pdba-secret -BNe 'SELECT VERSION()' 2>/dev/null || echo unknown; }

status() {
    local pid missing=0
    if pid=$(running mysql "$mysql_data"); then
        echo "MySQL:   process $pid, 127.0.0.1:$mysql_port, version $(mysql_version)"
        echo "         lab/real-servers.sh mysql -h127.0.0.1 -P$mysql_port -uapp -papp-secret app"
    else
        echo "MySQL:   not running"
        missing=1
    fi
    if pid=$(running mariadb "$state/mariadb-data"); then
        echo "MariaDB: process $pid, 127.0.0.1:$mariadb_port, version $(mariadb_version)"
        echo "         lab/real-servers.sh mariadb -h127.0.0.1 -P$mariadb_port -uapp -papp-secret app"
    else
        echo "MariaDB: not running"
        missing=1
    fi
    echo "Accounts on both: app/app-secret (database app), monitor/monitor, dba/dba-secret (everything)"
    return "$missing"
}

start() {
    require_servers
    mkdir -p "$state"
    if running mysql "$mysql_data" >/dev/null && running mariadb "$state/mariadb-data" >/dev/null; then
        echo "real-servers: already running"
    else
        stop_all
        start_mysql
        start_mariadb
        wait_ready mysql mysql_client
        wait_ready mariadb mariadb_client
    fi
    status
}

case ${1:-} in
    start) start ;;
    stop) stop_all ;;
    status) status ;;
    mysql | mariadb)
        require_servers
        client=$1
        shift
        "${client}_client" "$@"
        ;;
    *)
        echo "usage: lab/real-servers.sh start|stop|status|mysql|mariadb" >&2
        exit 2
        ;;
esac
