# Search a recording in the viewer.
for n in $(seq 40); do
    case $n in
    17 | 21) printf '\033[31merror\033[m: test %d failed: left != right\n' "$n" ;;
    *) printf '\033[32m   ok\033[m: test %d\n' "$n" ;;
    esac
done > log
# Slowly, so that the recording has a length.
tapdeck rec -q build.ahr -- bash -c 'while IFS= read -r line; do echo "$line"; sleep 0.2; done < log' > /dev/null
stage 76x18
say "exec tapdeck view --search 'error|panic' build.ahr"
tapdeck wait stage --text 'test 17 failed'
tapdeck wait stage --idle 500
curtain 0
