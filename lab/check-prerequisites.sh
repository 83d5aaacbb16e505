#!/bin/sh
# Names each missing prerequisite in one line, with the command that installs it. Prints nothing when all is there.
set -u

missing=0
oldest_rust=89 # rust-version in Cargo.toml, 1.89

install_with() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "apt-get install -y $1"
    elif command -v dnf >/dev/null 2>&1; then
        echo "dnf install -y $2"
    elif command -v apk >/dev/null 2>&1; then
        echo "apk add $3"
    else
        echo "your package manager ($1 on Debian)"
    fi
}

want() { # what, install command
    echo "pointsman: missing: $1. Install it with: $2" >&2
    missing=1
}

# cargo's minor version; an older one may fail on the lock file before it can say that it is too old.
rust_version() {
    "${CARGO:-cargo}" --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p'
}

[ "$(uname -s)" = Linux ] || { echo "pointsman: this is $(uname -s); it runs on Linux only" >&2; missing=1; }
if ! command -v "${CARGO:-cargo}" >/dev/null 2>&1; then
    want "Rust 1.$oldest_rust or newer (cargo)" 'rustup (https://rustup.rs)'
else
    found=$(rust_version)
    [ -z "$found" ] || [ "$found" -ge "$oldest_rust" ] ||
        want "Rust 1.$oldest_rust or newer (cargo is 1.$found)" 'rustup (https://rustup.rs)'
fi
command -v "${MAKE:-make}" >/dev/null 2>&1 || want 'make' "$(install_with make make make)"
command -v "${CC:-cc}" >/dev/null 2>&1 ||
    want 'a C compiler (cc)' "$(install_with build-essential gcc build-base)"
if [ -z "${OPENSSL_DIR:-}${OPENSSL_LIB_DIR:-}" ]; then
    if ! command -v pkg-config >/dev/null 2>&1; then
        want 'pkg-config' "$(install_with pkg-config pkgconf-pkg-config pkgconf)"
    elif ! pkg-config --exists openssl; then
        want 'the OpenSSL headers' "$(install_with libssl-dev openssl-devel openssl-dev)"
    fi
fi
exit "$missing"
