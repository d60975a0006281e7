# Give an agent a task, and read its answer.
stage 76x15
say 'tapdeck run -d --name claude -- claude'
wait_prompt
say 'tapdeck wait claude --state idle'
wait_prompt
say "tapdeck paste claude 'fix the failing test'"
wait_prompt
say 'tapdeck wait claude --state idle --timeout 10m'
wait_prompt
say 'tapdeck turns show claude --text'
wait_prompt
curtain 2
