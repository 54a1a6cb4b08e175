#!/bin/sh
# Installs system packages that some tests need, if run as root on a system with apt. Without them those
# tests are skipped; tests/allowed_skips.txt lists the accepted reasons.
set -u
packages="podman runc busybox-static bubblewrap systemd curl chromium pgbouncer postgresql-15 strace zsh fish less prometheus"

missing() { for name in $packages; do dpkg -s "$name" >/dev/null 2>&1 || echo "$name"; done; }

[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || exit 0
wanted=$(missing)
[ -n "$wanted" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
if apt-get -qq update >/dev/null 2>&1 &&
    apt-get -qq install --yes --no-install-recommends $wanted >/dev/null 2>&1; then
    echo "ci: installed" $wanted
else
    echo "ci: could not install" $wanted "- their tests are skipped"
fi
exit 0
