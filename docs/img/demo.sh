# Record a program, play it back, make a page of it.
stage 76x17
say 'tapdeck rec demo.ahr -- sh -c "seq 3; echo done"'
wait_prompt
say 'tapdeck play --fast demo.ahr'
wait_prompt
say 'tapdeck verify demo.ahr'
wait_prompt
say 'tapdeck convert -q demo.ahr -o demo.html && ls demo*'
wait_prompt
curtain 2
