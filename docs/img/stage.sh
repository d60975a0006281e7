# What the scripts of the pictures share: a stage, which is a recorded shell, and a hand that types.
# `cargo xtask pictures --record` runs a script as `bash -e NAME.sh`, with this file read before it,
# in an empty folder, with OUT as the recording to write.
export HOME=$PWD XDG_RUNTIME_DIR=$PWD/run TERM=xterm-256color LC_ALL=C.UTF-8 LESS=-R
unset XDG_STATE_HOME XDG_CONFIG_HOME
echo "PS1='\[\e[1;32m\]\$\[\e[m\] '; HISTFILE=" > .bashrc

# stage SIZE: opens the curtain.
stage() {
    rm -f "$OUT"
    tapdeck rec -d -q --name stage --window-size "$1" "$OUT" -- bash > /dev/null
    tapdeck wait stage --text '^\$'
}

# say TEXT: types at a person's pace, and presses Enter.
say() {
    for ((i = 0; i < ${#1}; i++)); do
        printf %s "${1:i:1}" | tapdeck type stage -
    done
    sleep 0.3
    tapdeck send stage Enter
}

# wait_prompt: until the shell has its prompt back.
wait_prompt() {
    tapdeck wait stage --prompt --timeout 60s
}

# curtain: ends the recording with what is shown now, and all sessions.
curtain() {
    sleep "${1:-1}"
    tapdeck kill stage --signal KILL 2> /dev/null || true
    for XDG_RUNTIME_DIR in "$PWD"/run "$PWD"/others; do
        for session in $(tapdeck ls --json | grep -o '"id":"[^"]*"' | cut -d'"' -f4); do
            tapdeck kill "$session" || true
        done
    done
}
