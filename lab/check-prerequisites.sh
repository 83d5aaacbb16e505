#!/bin/sh
# Names each missing prerequisite in one line, with the command that installs it. Prints nothing when all is there.
set -u

missing=0

install_with() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "apt-get install -y $1"
    elif command -v dnf >/dev/null 2>&1; then
        echo "dnf install -y $2"
    elif command -v apk >/dev/null 2>&1; then
        echo "apk add $3"
    elif command -v brew >/dev/null 2>&1; then
        echo "brew install $4"
    else
        echo "your package manager ($1 on Debian)"
    fi
}

want() { # what, install command
    echo "pointsman: missing: $1. Install it with: $2" >&2
    missing=1
}

command -v "${CARGO:-cargo}" >/dev/null 2>&1 ||
    want 'the Rust toolchain 1.89 or newer (cargo)' 'the rustup installer, or your distribution if it is new enough'
command -v "${CC:-cc}" >/dev/null 2>&1 ||
    want 'a C compiler (cc)' "$(install_with build-essential gcc build-base gcc)"
if [ -z "${OPENSSL_DIR:-}${OPENSSL_LIB_DIR:-}" ]; then
    if ! command -v pkg-config >/dev/null 2>&1; then
        want 'pkg-config' "$(install_with pkg-config pkgconf-pkg-config pkgconf pkg-config)"
    elif ! pkg-config --exists openssl; then
        want 'the OpenSSL headers' "$(install_with libssl-dev openssl-devel openssl-dev openssl)"
    fi
fi
exit "$missing"
