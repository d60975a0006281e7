# Mask secrets in a recording.
tapdeck rec -q login.ahr -- printf 'user   ada@example.org\ntoken  ghp_0123456789abcdefghijABCDEFGHIJ012345\n' > /dev/null
stage 76x11
say 'tapdeck play --fast login.ahr'
wait_prompt
say 'tapdeck scrub -q login.ahr -o clean.ahr'
wait_prompt
say 'tapdeck play --fast clean.ahr'
wait_prompt
curtain 2
