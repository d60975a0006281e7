# What a failed test looks like.
cat > less.scenario.yaml <<'END'
scenario: less
size: 40x8
program:
  run: [less, numbers.txt]
  files: {numbers.txt: "one\ntwo\nthree\n"}
steps:
  - expect: {contains: one}
  - send: q
assert:
  - {never: {contains: three}}
END
stage 76x24
say 'tapdeck test --live .'
tapdeck wait stage --text '1 failed'
curtain 0
