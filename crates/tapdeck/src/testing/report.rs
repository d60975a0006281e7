//! Reports of a run: for CI servers (JUnit), for programs (JSON), and for people: one page with
//! pictures of what was wrong and the recordings to play. Every way to run tests writes the same.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_core::Time;
use tapdeck_core::base64;
use tapdeck_core::check::{Screen, Timeline, What};
use tapdeck_host::disk;
use tapdeck_tape::cassette::{Cassette, CassetteReader, Files};
use tapdeck_tape::export::{HtmlOptions, SvgOptions, html, svg_still};
use tapdeck_term::{Settings, Size, Term, is_unsafe, printable};

use super::scenario::{Fault, Outcome, Report};
use crate::OutFile;

/// The largest picture, in rows and columns.
const LARGEST: Size = Size { cols: 400, rows: 200 };

/// Writes a report into a folder: `index.html`, `report.json`, `junit.xml`, and a page for each
/// recording of a failed run.
///
/// # Errors
/// When a file cannot be written.
pub fn write_report(folder: &Path, reports: &[Report], took: Duration) -> io::Result<()> {
    disk::create_folders(folder)?;
    let mut body = String::new();
    for (i, report) in reports.iter().enumerate() {
        let page = match report.evidence.as_ref().and_then(|e| e.recording.as_ref()) {
            Some(files) => recording_page(folder, i, files)?,
            None => None,
        };
        section(report, page.as_deref(), &mut body);
    }
    let (failed, skipped) = (count(reports, is_failed), count(reports, is_skipped));
    let head = format!(
        "{} passed, {failed} failed, {skipped} skipped in {:.1} s",
        reports.len() - failed - skipped,
        took.as_secs_f64()
    );
    write(&folder.join("index.html"), &PAGE.replace("{head}", &head).replace("{body}", &body))?;
    write(&folder.join("report.json"), &json_report(reports, took).to_string())?;
    write(&folder.join("junit.xml"), &junit(reports, took))
}

const PAGE: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-src 'self' file:">
<meta name="viewport" content="width=device-width">
<title>Tapdeck test report</title>
<style>
body { font-family: system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color-scheme: light dark; }
pre { overflow-x: auto; padding: .5rem; border: 1px solid #8884; }
.failed > summary { color: #c22; } .passed > summary { color: #282; }
figure { display: inline-block; margin: .5rem; vertical-align: top; } img { max-width: 36rem; }
iframe { width: 100%; height: 40rem; border: 1px solid #8884; }
</style>
</head>
<body>
<h1>Tapdeck test report</h1>
<p>{head}</p>
{body}</body>
</html>
"#;

/// The page that plays a recording; returns its name.
fn recording_page(folder: &Path, number: usize, files: &Files) -> io::Result<Option<String>> {
    let Ok(cassette) = Cassette::from_files(files) else { return Ok(None) };
    let name = format!("recording-{}.html", number + 1);
    let mut out = OutFile::create_shared(&folder.join(&name), true)?;
    let mut reader = CassetteReader::new(cassette);
    html(&mut reader, Vec::new(), HtmlOptions::default(), &mut out).map_err(io::Error::other)?;
    out.commit()?;
    Ok(Some(name))
}

/// A scenario, unfolded if it failed.
fn section(report: &Report, page: Option<&str>, out: &mut String) {
    let (word, faults, why) = parts(&report.outcome);
    let why = why.or(report.flaky.then_some("flaky: it failed at first"));
    let open = if is_failed(&report.outcome) { " open" } else { "" };
    let ms = report.took.as_secs_f64() * 1e3;
    let name = markup(&report.name);
    let _ = writeln!(
        out,
        "<details class=\"{word}\"{open}><summary>{word}: {name} ({} checks, {ms:.0} ms)</summary>",
        report.checks
    );
    if let Some(why) = why {
        let _ = writeln!(out, "<p>{}</p>", markup(why));
    }
    for fault in faults {
        let _ = writeln!(out, "<pre>{}</pre>", markup(&fault.explain(&report.path)));
        let timeline = report.evidence.as_ref().map(|e| &e.timeline);
        for (label, term) in pictures(fault, timeline) {
            let mut svg = Vec::new();
            // A writer into memory does not fail.
            if svg_still(&term, SvgOptions::default(), &mut svg).is_ok() {
                let data = base64::encode(&svg);
                let _ = writeln!(
                    out,
                    "<figure><img alt=\"{label}\" src=\"data:image/svg+xml;base64,{data}\"><figcaption>{label}</figcaption></figure>"
                );
            }
        }
    }
    if let Some(page) = page {
        let _ = writeln!(
            out,
            "<p><a href=\"{page}\">The recording</a></p>\n<iframe src=\"{page}\" title=\"recording of {name}\" loading=\"lazy\"></iframe>"
        );
    }
    out.push_str("</details>\n");
}

/// The screens of a fault: what was expected, what was shown, and where they differ.
fn pictures(fault: &Fault, timeline: Option<&Timeline>) -> Vec<(&'static str, Term)> {
    let mut out = Vec::new();
    let texts = fault.texts.as_deref();
    if let Some((old, _)) = texts.filter(|(old, _)| !old.is_empty()) {
        out.push(("old", drawn(old, old)));
    }
    if let (Some(at), Some(timeline)) = (fault.at, timeline) {
        out.push(("new", at_time(timeline, at)));
    }
    if let Some((old, new)) = texts.filter(|(old, _)| !old.is_empty()) {
        out.push(("difference", drawn(old, new)));
    }
    out
}

/// The terminal at a time.
fn at_time(timeline: &Timeline, at: Time) -> Term {
    let mut screen = Screen::new(timeline.size);
    for moment in timeline.moments.iter().take_while(|m| m.at.time <= at) {
        if matches!(moment.what, What::Output(_) | What::Resize(_)) {
            screen.advance(moment.at, &moment.what);
        }
    }
    screen.into_term()
}

/// A text as a screen: what only the new one has is green, what only the old one has is red.
fn drawn(old: &str, new: &str) -> Term {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let rows = old.len().max(new.len()).clamp(1, usize::from(LARGEST.rows));
    let width = |line: &&str| tapdeck_core::check::Row::from_text(line).column(line.len());
    let cols = old.iter().chain(&new).map(width).max().unwrap_or(0).clamp(20, LARGEST.cols);
    let mut term = Term::new(Size::new(cols, rows as u16), Settings::default());
    for y in 0..rows {
        let line = |lines: &[&str]| printable(lines.get(y).copied().unwrap_or_default());
        let (was, is) = (line(&old), line(&new));
        let mut text = format!("\x1b[{};1H\x1b[?7l", y + 1);
        let mut before: Vec<char> = was.chars().collect();
        before.resize(before.len().max(is.chars().count()), ' ');
        let mut after: Vec<char> = is.chars().collect();
        after.resize(before.len(), '\0');
        for (was, is) in before.into_iter().zip(after) {
            match is {
                '\0' => text.extend(["\x1b[41m".to_owned(), was.to_string(), "\x1b[m".to_owned()]),
                is if is == was => text.push(is),
                is => text.extend(["\x1b[30;42m".to_owned(), is.to_string(), "\x1b[m".to_owned()]),
            }
        }
        term.feed(text.as_bytes());
    }
    term.feed(b"\x1b[?25l");
    term
}

fn parts(outcome: &Outcome) -> (&'static str, &[Fault], Option<&str>) {
    match outcome {
        Outcome::Passed => ("passed", &[], None),
        Outcome::Failed(faults) => ("failed", faults, None),
        Outcome::Skipped(why) => ("skipped", &[], Some(why)),
    }
}

fn is_failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(_))
}

fn is_skipped(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Skipped(_))
}

fn count(reports: &[Report], which: impl Fn(&Outcome) -> bool) -> usize {
    reports.iter().filter(|r| which(&r.outcome)).count()
}

/// The report for programs.
pub fn json_report(reports: &[Report], took: Duration) -> Value {
    let scenario = |report: &Report| {
        let (result, faults, why) = parts(&report.outcome);
        let fault = |f: &Fault| {
            let (path, line) = f.place(&report.path);
            json!({
                "path": path.to_string_lossy(),
                "line": line,
                "claim": f.claim,
                "message": f.message,
                "details": f.details,
            })
        };
        json!({
            "name": report.name,
            "variant": report.variant,
            "path": report.path.to_string_lossy(),
            "result": result,
            "why": why,
            "flaky": report.flaky,
            "checks": report.checks,
            "ns": report.took.as_nanos() as u64,
            "faults": faults.iter().map(fault).collect::<Vec<_>>(),
        })
    };
    json!({ "scenarios": reports.iter().map(scenario).collect::<Vec<_>>(), "ns": took.as_nanos() as u64 })
}

/// The report for CI servers, as JUnit XML.
pub fn junit(reports: &[Report], took: Duration) -> String {
    let (failed, skipped) = (count(reports, is_failed), count(reports, is_skipped));
    // The schema that servers check against knows `skipped` of a suite, not of all of them, and
    // wants a failure's type.
    let head = format!("tests=\"{}\" failures=\"{failed}\"", reports.len());
    let tail = format!("errors=\"0\" time=\"{:.3}\"", took.as_secs_f64());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {head} {tail}>\n  \
         <testsuite name=\"tapdeck\" {head} skipped=\"{skipped}\" {tail}>\n"
    );
    for report in reports {
        let folder = report.path.parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let _ = write!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\" time=\"{:.6}\"",
            markup(&report.name),
            markup(&folder),
            markup(&report.path.to_string_lossy()),
            report.took.as_secs_f64()
        );
        match &report.outcome {
            Outcome::Passed => out.push_str("/>\n"),
            Outcome::Skipped(why) => {
                let _ = writeln!(out, ">\n      <skipped message=\"{}\"/>\n    </testcase>", attribute(why));
            }
            Outcome::Failed(faults) => {
                let message = faults.first().map(|f| f.message.as_str()).unwrap_or_default();
                let text: String = faults.iter().map(|f| f.explain(&report.path)).collect();
                let (message, text) = (attribute(message), attribute(&text));
                let _ = writeln!(
                    out,
                    ">\n      <failure type=\"assertion\" message=\"{message}\">{text}</failure>\n    </testcase>"
                );
            }
        }
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// Escapes text for XML, without the characters that XML cannot carry.
fn markup(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The same where line ends would be lost.
fn attribute(text: &str) -> String {
    markup(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut out = OutFile::create_shared(path, true)?;
    out.write_all(text.as_bytes())?;
    out.commit()
}

#[cfg(test)]
mod tests {
    use tapdeck_tape::scenario::Line;

    use super::*;

    #[test]
    fn reports_are_xml_whatever_programs_show() {
        let line = Line { number: 3, ..Line::default() };
        let fault =
            Fault { line: Some(line.into()), details: "\u{7}]]>\n".into(), ..Fault::new("a<b", "\"&\x1b") };
        let report = |outcome| Report {
            path: "x/y.scenario.yaml".into(),
            variant: None,
            name: "y".into(),
            outcome,
            checks: 1,
            took: Duration::from_micros(1_500),
            captured: None,
            changes: Vec::new(),
            evidence: None,
            flaky: false,
            pending: None,
        };
        let text = junit(
            &[
                report(Outcome::Passed),
                report(Outcome::Failed(vec![fault])),
                report(Outcome::Skipped("z".into())),
            ],
            Duration::ZERO,
        );
        assert!(
            text.contains("tests=\"3\" failures=\"1\" skipped=\"1\"") && text.contains("a&lt;b"),
            "{text}"
        );
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        assert!(!text.contains("]]>"), "{text}");
    }
}
