#!/usr/bin/env bash
# Installs the real database servers that the tests and demonstrations run against, on a Debian machine, as root:
#
#   MariaDB     from the machine's own Debian release (mariadb-server-core, mariadb-client: no system service)
#   MySQL 9.7   from Debian unstable, in a directory of its own (a chroot), so that the machine itself stays as it is
#
# Safe to run again: what is there already is left alone. lab/real-servers.sh starts what this installs.
#
#   POINTSMAN_MYSQL_ROOT   where MySQL goes (default: $XDG_CACHE_HOME/pointsman/mysql-sid, about 700 MB)
#
# Exit status: 0 both are there; 77 this machine cannot have them (one line says why); 1 something went wrong.
set -euo pipefail

mysql_root=${POINTSMAN_MYSQL_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/pointsman/mysql-sid}
log_dir=$(mktemp -d)
trap 'rm -rf "$log_dir"' EXIT
mirror_unreachable=0

say() { printf 'install-servers: [%3d s] %s\n' "$SECONDS" "$*"; }
cannot() { printf 'install-servers: cannot install real servers here: %s\n' "$*" >&2; exit 77; }

# The failed command's own last lines, then ours. Without a mirror a failure is no fault of the machine's set-up.
fail() {
    local log=$1
    shift
    tail -n 15 "$log" >&2
    [ "$mirror_unreachable" = 0 ] || cannot "no package mirror can be reached ($*)"
    printf 'install-servers: FAILED: %s\n' "$*" >&2
    exit 1
}

quietly() { # quietly WHAT COMMAND...: its output is shown only when it fails
    local what=$1 log=$log_dir/log
    shift
    say "$what"
    DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@" >"$log" 2>&1 </dev/null || fail "$log" "$what"
}

apt_install() { apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"; }

have_mariadb() {
    local program
    for program in mariadbd mariadb mariadb-dump mariadb-install-db; do
        command -v "$program" >/dev/null || return 1
    done
}
have_mysql() { [ -x "$mysql_root/usr/sbin/mysqld" ] && [ -x "$mysql_root/usr/bin/mysql" ]; }

update_package_lists() {
    say "updating the package lists"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update --error-on=any \
        >"$log_dir/update" 2>&1 </dev/null || mirror_unreachable=1
}

# The mirror that apt itself uses for Debian's main archive, whichever way its sources are written.
debian_mirror() {
    # shellcheck disable=SC2016 # apt's own placeholders, not the shell's
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
        awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 == "main" { print $4; exit }'
}

install_mariadb() {
    quietly "installing MariaDB" apt_install mariadb-server-core mariadb-client
}

# Built beside its place and moved there when complete, so that an interrupted run leaves nothing that looks finished.
install_mysql() {
    local partial=$mysql_root.partial mirror
    # Debian signs unstable with its newest key: the keyring package must be current, not merely present.
    quietly "installing debootstrap and Debian's keys" apt_install debootstrap debian-archive-keyring
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || cannot "apt's sources name no mirror of Debian's main archive"
    rm -rf "$partial"
    mkdir -p "$partial"
    quietly "unpacking a minimal Debian unstable" debootstrap --variant=minbase \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg sid "$partial" "$mirror"
    quietly "installing MySQL in it" chroot "$partial" \
        apt-get install -y --no-install-recommends mysql-server-core mysql-client
    chroot "$partial" apt-get clean
    rm -rf "$partial"/var/lib/apt/lists/*
    mv "$partial" "$mysql_root"
}

main() {
    if have_mariadb && have_mysql; then
        say "already installed"
    else
        grep -qx 'ID=debian' /etc/os-release 2>/dev/null || cannot "this is not Debian"
        [ "$(id -u)" = 0 ] || cannot "this needs root (installing packages, chroot)"
        mkdir -p "$(dirname "$mysql_root")"
        exec 9>"$mysql_root.lock"
        flock -w 900 9 || { printf 'install-servers: FAILED: another installation is not ending\n' >&2; exit 1; }
        update_package_lists
        have_mariadb || install_mariadb
        have_mysql || install_mysql
    fi
    say "$(mariadbd --version)"
    if [ "$(id -u)" = 0 ]; then
        say "$(chroot "$mysql_root" /usr/sbin/mysqld --version), in $mysql_root"
    fi
}

main
