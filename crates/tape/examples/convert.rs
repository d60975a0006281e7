//! Converts or exports a recording by hand: `convert IN OUT`, the formats by their names.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool for trying things by hand")]

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::time::Instant;

use tapdeck_tape::ahr::Quality;
use tapdeck_tape::export::{self, HtmlOptions, SvgOptions};
use tapdeck_tape::{Beside, Container, Replay, convert, open, writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = &args[..] else { return Err("convert IN OUT".into()) };
    let mut head = vec![0; 4096];
    let n = File::open(input)?.read(&mut head)?;
    let container = Container::detect(Some(input), &head[..n], false)
        .or_else(|| Container::of_name(input))
        .ok_or("unknown format")?;
    let mut beside = Beside::default();
    if let Ok(timing) = File::open(format!("{input}.timing")) {
        beside.timing = Some(Box::new(timing));
    }
    let start = Instant::now();
    let mut reader = open(container, File::open(input)?, beside)?;
    let header = reader.header().clone();
    let mut out = BufWriter::new(File::create(output)?);
    let end = output.rsplit('.').next().unwrap_or_default();
    match end {
        "html" => export::html(&mut *reader, HtmlOptions::default(), out)?,
        "svg" => export::svg_animated(&mut *reader, SvgOptions::default(), out)?,
        "md" | "txt" | "ansi" | "json" | "csv" => {
            let replay = Replay::to_end(&mut *reader, 1_000_000)?;
            match end {
                "md" => export::md(&header, &replay, out)?,
                "txt" => export::txt(&replay, out)?,
                "ansi" => export::ansi(&replay, out)?,
                "json" => export::json(&header, &replay, out)?,
                _ => export::branch_csv(replay.term(), replay.moments(), out)?,
            }
        }
        _ => {
            let target = Container::of_name(output).ok_or("unknown target")?;
            let mut target = writer(target.format, Quality::default()).ok_or("cannot be written")?;
            let mut timing = BufWriter::new(File::create(format!("{output}.timing"))?);
            let report = convert::<Box<dyn std::error::Error>>(&mut *reader, &mut *target, |parts, _| {
                out.write_all(&parts.main)?;
                timing.write_all(&parts.timing)?;
                Ok(())
            })?;
            println!("{report:#?}");
        }
    }
    println!("{:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}
