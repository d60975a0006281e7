//! A recording as a test: how long thirty claims about ten seconds of an agent's screen take to
//! judge, collapsed, in the command as a user runs it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{Options, Row, median};

/// How many pictures the ten seconds have.
const PICTURES: usize = 200;

/// Measures the check of one scenario, and the start of the program alone.
pub fn measure(tapdeck: &Path, o: &Options, folder: &Path) -> Result<Vec<Row>> {
    let run = |args: &[&str]| -> Result<Output> {
        let output = Command::new(tapdeck).args(args).current_dir(folder).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "tapdeck {}: {}", args[0], String::from_utf8_lossy(&output.stdout));
        Ok(output)
    };
    std::fs::write(folder.join("ten.cast"), cast()?)?;
    run(&["convert", "ten.cast", "-o", "ten.cassette"])?;
    let manifest: Value = serde_json::from_slice(&std::fs::read(folder.join("ten.cassette/manifest.json"))?)?;
    std::fs::write(folder.join("ten.scenario.yaml"), scenario(&manifest)?)?;
    let (mut whole, mut check, mut start) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..o.rounds.max(5) * 3 {
        let at = Instant::now();
        run(&["--version"])?;
        start.push(at.elapsed().as_secs_f64() * 1e3);
        let at = Instant::now();
        let output = run(&["test", "--json", "ten.scenario.yaml"])?;
        whole.push(at.elapsed().as_secs_f64() * 1e3);
        let said: Value = serde_json::from_slice(&output.stdout)?;
        check.push(said["ns"].as_f64().context("the report has no time")? / 1e6);
    }
    let row = |name, times: Vec<f64>| (name, vec![("ms", median(times.into_iter()))]);
    Ok(vec![row("tapdeck test", whole), row("the check in it", check), row("tapdeck --version", start)])
}

/// Ten seconds of a spinner, a box for the prompt and an answer that is being written.
fn cast() -> Result<String> {
    let mut cast = json!({"version": 2, "width": 120, "height": 40}).to_string();
    for n in 0..PICTURES {
        let spinner = ['⠋', '⠙', '⠹', '⠸'][n % 4];
        let mut text = format!(
            "\x1b[?2026h\x1b[38;1H\x1b[2K\x1b[33m{spinner}\x1b[0m Working… ({}s · esc to interrupt)\
             \x1b[39;1H\x1b[2K> \x1b[40;1H\x1b[2K\x1b[2m? for shortcuts\x1b[0m",
            n / 20
        );
        if n % 2 == 0 {
            write!(
                text,
                "\x1b[{};1H\x1b[36m●\x1b[0m line {n} of what is being answered\r\n",
                n / 2 % 36 + 1
            )?;
        }
        text.push_str("\x1b[?2026l");
        write!(cast, "\n{}", json!([n as f64 / 20.0, "o", text]))?;
    }
    Ok(cast)
}

/// Thirty claims of the usual kinds.
fn scenario(manifest: &Value) -> Result<String> {
    let digest = &manifest["content_digest"]["sha256"];
    let mut text = format!(
        "scenario: ten seconds\ncassette: {{id: {}, sha256: {digest}}}\nsize: 120x40\nassert:\n",
        manifest["id"]
    );
    for n in 0..10 {
        writeln!(
            text,
            "- {{at: {}ms, screen: {{contains: line {} of, rows: 1-36}}}}",
            n * 1000 + 50,
            n * 20
        )?;
    }
    for n in 0..6 {
        writeln!(text, "- {{eventually: {{contains: line {} of}}}}", n * 30)?;
        writeln!(text, "- {{never: {{contains: panic {n}}}}}")?;
    }
    for n in 0..4 {
        writeln!(text, "- {{never: {{matches: 'error [0-9]+{n}'}}}}")?;
    }
    text.push_str(
        "- {from: 1s, to: 9s, always: {contains: esc to interrupt}}\n\
         - {screen: {contains: '? for shortcuts'}}\n\
         - {order: [{shows: line 0 of}, {shows: line 20 of}, {shows: line 100 of}]}\n\
         - {delay: {from: {shows: line 0 of}, to: {shows: line 100 of}, min: 4s}}\n",
    );
    Ok(text)
}
