//! The `tapdeck` command.
fn main() {}
