# What the tour shows. Run by make.sh, on the terminal of a session named "tour".

bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' cyan=$'\e[36m' off=$'\e[0m'

# A page: a title and lines to read.
page() {
    printf '\e[H\e[2J%s%s%s\n\n' "$bold$cyan" "$1" "$off"
    shift
    printf '%s\n' "$@"
    sleep "$(( $# + 1 ))"
    printf '\n'
}

# Types a command at a prompt, and runs it.
try() {
    printf '%s$%s ' "$green" "$off"
    sleep 0.6
    local i
    for (( i = 0; i < ${#1}; i++ )); do
        printf '%s' "${1:i:1}"
        sleep 0.05
    done
    sleep 0.7
    printf '\n'
    eval "$1"
}

# Presses keys on this terminal after a while, as you would.
press() {
    local after=$1
    shift
    { sleep "$after"; for key in "$@"; do tapdeck send tour "$key"; sleep 0.3; done; } >/dev/null 2>&1 &
}

page 'Tapdeck in two minutes' \
    'This is a recording: the keys of "tapdeck play" work now.' \
    '' \
    '  space  pause         ]  next chapter     >  faster' \
    '  ← →    5 seconds     [  last chapter     q  quit' \
    '' \
    'You can type every command that you see here yourself.'

page '1. Record: tapdeck rec' \
    'rec runs a program and records what its terminal shows.' \
    'The program goes after "--"; without one it is your shell.'
try 'tapdeck rec hello.ahr -- sh -c "echo hi; sleep 1; date"'
sleep 3

page '2. Replay: tapdeck play' \
    'play shows the recording again, in its own time.' \
    'view opens it to search, info tells what it is, convert' \
    'makes other formats of it.'
try 'tapdeck play --fast hello.ahr'
sleep 3
try 'tapdeck convert -q hello.ahr -o hello.cast && ls'
sleep 3

page '3. Live sessions: tapdeck run and attach' \
    'run -d starts a program in the background. attach brings' \
    'it to your terminal, and Ctrl-\ d leaves it running. peek' \
    'only looks.'
try 'tapdeck run -d --name build -- sh'
sleep 1
try 'tapdeck type build "seq 1 5" --enter'
sleep 1
try 'tapdeck peek build'
sleep 3
press 5 'C-\' d
try 'tapdeck attach build'
sleep 2

page '4. Drive it: tapdeck wait' \
    'Scripts and agents type, and then wait for what they' \
    'expect: a text, an idle agent (--state idle), silence' \
    '(--idle) or the end (--exit).'
try 'tapdeck type build "sleep 2; echo all is well" --enter'
sleep 0.5
try 'tapdeck wait build --text "^all is well" && echo came'
sleep 2
try 'tapdeck kill build'
sleep 2

page '5. Test: tapdeck test' \
    'A cassette is a run kept as evidence. A scenario says' \
    'what must be on its screen. test checks it without the' \
    'program, in your CI.'
cat > hello.scenario.yaml <<'SCENARIO'
scenario: hello
program: {run: [sh, -c, "echo 12 passed"]}
steps:
  - wait: {exit: true}
assert:
  - {screen: {contains: "12 passed"}}
SCENARIO
try 'cat hello.scenario.yaml'
sleep 3
try 'tapdeck test --record hello.scenario.yaml'
sleep 2
try 'tapdeck test hello.scenario.yaml'
sleep 3

page 'Now you' \
    '  tapdeck rec demo.ahr     record your shell; exit ends it' \
    '  tapdeck play demo.ahr    watch it; ? shows the keys' \
    '  tapdeck run -d -- top    start a session' \
    '  tapdeck attach           bring it to your terminal' \
    '' \
    '  tapdeck --help           all commands' \
    '  tapdeck help rec         one of them'
sleep 2
