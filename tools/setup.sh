#!/bin/sh
# Creates .venv with the locked dependencies and the packages of the workspace. `make setup` calls it when needed.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/bin/python

log() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# A pyenv shim can exist for a version that is not installed, so each candidate is executed before it is used.
find_python() {
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
        if recent "$candidate"; then echo "$candidate"; return; fi
    done
    fail "no Python 3.11 or newer found (tried: ${PYTHON:-python3.11 to python3.14, python3, python})." \
        "Install one, or name it: make setup PYTHON=/path/to/python3.11"
}

make_venv() {
    python=$(find_python)
    log "creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv ||
        fail "$python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv"
}

pip() { "$venv" -m pip --disable-pip-version-check --quiet "$@"; }

# The lock pins uv too; pip fetches that one with the index and certificates this machine has configured for it.
bootstrap_uv() {
    awk '/^uv==/ { found = 1 } found { print } found && !/\\$/ { exit }' requirements.lock >.venv/uv.txt
    pip install --require-hashes --no-deps -r .venv/uv.txt ||
        fail "pip cannot download packages; see its message above and \`$venv -m pip config list\`"
}

# uv does not read pip's configuration, so the index configured for pip is passed to uv.
uv() {
    index=${PIP_INDEX_URL:-$("$venv" -m pip config get global.index-url 2>/dev/null || true)}
    ${index:+env "UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}"} \
        .venv/bin/uv --quiet --system-certs pip "$@" --python "$venv"
}

add() {
    uv install "$@" || {
        log "uv failed; trying pip, which takes longer"
        pip install "$@"
    }
}

recent "$venv" || make_venv
bootstrap_uv
log "installing $(grep -c '^[^ #]*==' requirements.lock) locked dependencies"
add --require-hashes -r requirements.lock
log "installing the packages of the workspace"
# shellcheck disable=SC2046
add --no-deps --no-build-isolation $(printf -- '-e %s ' clients/python services/*/)
touch .venv/.setup-done
log "done"
