#!/usr/bin/env bash
# Makes tour.cast, the recording that `tapdeck tour` plays:
#   crates/cli/src/tour/make.sh target/debug/tapdeck
# The commands in the recording are really run, in a home of their own.
set -eu
binary=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir -p "$home/bin" "$home/run" "$home/work"
chmod 700 "$home/run"
ln -s "$binary" "$home/bin/tapdeck"
cp "$here/script.sh" "$home"
cd "$home/work"
env -i HOME="$home" PATH="$home/bin:/usr/bin:/bin" TERM=xterm-256color LANG=C.UTF-8 SHELL=/bin/sh \
    XDG_RUNTIME_DIR="$home/run" XDG_STATE_HOME="$home/state" \
    tapdeck rec --quiet --overwrite --headless --size 58x19 --name tour --title "Tapdeck in two minutes" \
    "$home/tour.cast" -- bash ../script.sh
# Each page begins a chapter: a marker behind the event that clears the screen for it.
awk '{ print }
     match($0, /\[36m[^\\]+/) && /\[H/ { printf "[0.000, \"m\", \"%s\"]\n", substr($0, RSTART + 4, RLENGTH - 4) }' \
    "$home/tour.cast" > "$here/tour.cast"
ls -l "$here/tour.cast"
