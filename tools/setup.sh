#!/bin/sh
# Creates .venv with the locked dependencies and the packages of the workspace. `make setup` calls it when needed.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/bin/python
# `finished` is written last. Without it, or with `begun`, an earlier run was interrupted, and .venv is made anew: what
# interrupted installer leaves cannot be repaired in general.
finished=.venv/.setup-done
begun=.venv/.setup-begun
ticker=

log() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# A line every two seconds while a step is silent.
step() {
    stop_ticker
    log "$1"
    ( seconds=0; while sleep 2; do seconds=$((seconds + 2)); log "$1 ($seconds s)"; done ) &
    ticker=$!
}
stop_ticker() {
    if [ -n "$ticker" ]; then kill "$ticker" 2>/dev/null || true; wait "$ticker" 2>/dev/null || true; fi
    ticker=
}
interrupted() {
    stop_ticker
    printf 'setup: interrupted; `make setup` begins again\n' >&2
    exit 130
}
trap stop_ticker EXIT
trap interrupted INT TERM
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
    step "creating .venv with $("$python" --version)"
    # Not with --clear, which fails on the remains of an interrupted run that is still ending.
    rm -rf .venv
    "$python" -m venv .venv ||
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
        step "uv failed; trying pip, which takes longer"
        pip install "$@"
    }
}

if ! [ -e "$finished" ] || [ -e "$begun" ] || ! recent "$venv"; then make_venv; fi
touch "$begun"
step "downloading uv, which installs the rest"
bootstrap_uv
step "installing $(grep -c '^[^ #]*==' requirements.lock) locked dependencies"
add --require-hashes -r requirements.lock
step "installing the packages of the workspace"
# shellcheck disable=SC2046
add --no-deps --no-build-isolation $(printf -- '-e %s ' clients/python services/*/)
stop_ticker
touch "$finished"
rm "$begun"
log "done"
