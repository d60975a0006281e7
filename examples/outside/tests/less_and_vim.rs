use tapdeck::testing::{Program, TestResult};
#[test]
fn less_searches_and_vim_edits() -> TestResult {
    let mut less = Program::new(["less", "+/profile", "Cargo.toml"]).size(60, 6).start()?;
    less.expect("line-tables-only")?;
    less.send("q")?;
    less.finish()?.success()?;
    let mut vim = Program::new(["vim", "-nu", "NONE", "Cargo.toml"]).start()?;
    vim.type_text("ihello ")?;
    vim.expect("hello # A project")?;
    vim.type_text("\x1b:q!\n")?;
    vim.finish()?.success()
}
