//! Recordings on disk: how much slower than the model alone are replay, index, exports and opening
//! at a moment. Everything goes through what the commands use (`Source`, `Player`, the exports),
//! from files, on one workload after the other in turn, so that the machine's moods meet all of
//! them.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tapdeck_host::{Blocks, Goal, Player, Source};
use tapdeck_tape::ahr::{BlockBuilder, Quality, Record};
use tapdeck_tape::export::{self, HtmlOptions, LinesAs};
use tapdeck_tape::index::{IndexBuilder, IndexOptions, index_blocks};
use tapdeck_tape::{Format, Replay, Time, convert, writer};
use tapdeck_term::{Settings, Size, Term};

use crate::{Options, Row, median};

/// What a replay keeps, in every measurement.
const ROWS: usize = 10_000;
const SIZE: Size = Size::new(120, 40);
/// A session that writes so fast takes a plausible time; the files are compressed as at leisure.
const NS_PER_BYTE: u64 = 1_000;
const SEEKS: u64 = 20;

/// What is measured, in this order in every round.
const WHAT: [&str; 7] = ["model", "replay", "index", "cast", "md", "html", "seek"];

/// Measures a workload that lies in `raw`.
pub fn measure(raw: &Path, o: &Options, folder: &Path) -> Result<Vec<Row>> {
    let tape = Tape::write(raw, folder)?;
    let mut times: [Vec<f64>; WHAT.len()] = Default::default();
    for _ in 0..o.rounds {
        for (what, times) in WHAT.iter().zip(&mut times) {
            let start = Instant::now();
            let jumps = tape.run(what)?;
            times.push(start.elapsed().as_secs_f64() / jumps);
        }
    }
    tape.remove()?;
    let seconds = times.map(|t| median(t.into_iter()));
    let mb = tape.bytes as f64 / 1e6;
    let row = |(what, &s): (&&'static str, &f64)| {
        let columns =
            vec![("seconds", s), ("MB/s", mb / s), ("x model", seconds[0] / s), ("x replay", seconds[1] / s)];
        (*what, columns)
    };
    Ok(WHAT.iter().zip(&seconds).map(row).collect())
}

struct Tape {
    raw: PathBuf,
    ahr: PathBuf,
    ahx: PathBuf,
    out: PathBuf,
    bytes: u64,
}

impl Tape {
    /// Writes the recording, as a recorder would.
    fn write(raw: &Path, folder: &Path) -> Result<Self> {
        let ahr = folder.join("tape.ahr");
        let mut input = File::open(raw)?;
        let mut file = BufWriter::new(File::create(&ahr)?);
        let mut builder = BlockBuilder::new(0);
        let _ = builder.push(Record::resize(1, SIZE));
        let mut bytes = 0_u64;
        let mut buffer = vec![0; 4095];
        loop {
            let n = input.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            let mut rest = Some(Record::data(1 + bytes * NS_PER_BYTE, bytes, buffer[..n].to_vec()));
            bytes += n as u64;
            while let Some(record) = rest {
                rest = builder.push(record);
                if builder.is_full() {
                    file.write_all(builder.finish(Quality::default(), false))?;
                }
            }
        }
        file.write_all(builder.finish(Quality::default(), true))?;
        file.flush()?;
        let (ahx, out) = (folder.join("tape.ahx"), folder.join("tape.out"));
        Ok(Self { raw: raw.to_owned(), ahr, ahx, out, bytes })
    }

    fn remove(&self) -> Result<()> {
        for path in [&self.ahr, &self.ahx, &self.out] {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }

    /// Does one thing once and says how many times it was done.
    fn run(&self, what: &str) -> Result<f64> {
        match what {
            "model" => self.model()?,
            "replay" => {
                let replay = Replay::to_end(&mut *self.source()?.open()?, ROWS)?;
                ensure!(replay.offset().0 == self.bytes, "the replay lost something");
            }
            "index" => self.index()?,
            "cast" => {
                let mut target = writer(Format::CastV3, Quality::default()).context("cast is written")?;
                let mut out = BufWriter::new(File::create(&self.out)?);
                convert::<anyhow::Error>(&mut *self.source()?.open()?, &mut *target, |parts, _| {
                    Ok(out.write_all(&parts.main)?)
                })?;
                out.flush()?;
            }
            "md" => {
                let out = BufWriter::new(File::create(&self.out)?);
                export::lines(LinesAs::Md, &mut *self.source()?.open()?, Vec::new(), 1_000_000, out)?;
            }
            "html" => {
                let out = BufWriter::new(File::create(&self.out)?);
                export::html(&mut *self.source()?.open()?, Vec::new(), HtmlOptions::default(), out)?;
            }
            _ => {
                let end = self.bytes * NS_PER_BYTE;
                // Each from the very start, as `play --at` does it.
                for i in 0..SEEKS {
                    let mut player = Player::open(&self.ahr, Settings::default())?;
                    player.seek(Goal::Time(Time::from_nanos(end / SEEKS * i + end / 7 % (end / SEEKS))))?;
                }
                return Ok(SEEKS as f64);
            }
        }
        Ok(1.0)
    }

    fn source(&self) -> Result<Source> {
        Ok(Source::find(&self.ahr, None, None)?)
    }

    /// The model alone, on the same bytes.
    fn model(&self) -> Result<()> {
        let settings = Settings::default().scrollback(ROWS).replies(false);
        let mut term = Term::new(SIZE, settings);
        let mut file = File::open(&self.raw)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n = file.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            term.feed(&buffer[..n]);
        }
    }

    fn index(&self) -> Result<()> {
        let mut out = BufWriter::new(File::create(&self.ahx)?);
        let mut blocks = Blocks::open(Arc::new(File::open(&self.ahr)?), 0, Arc::default());
        let builder = IndexBuilder::new(IndexOptions::default());
        index_blocks::<anyhow::Error>(builder, || blocks.next_item(), |piece| Ok(out.write_all(piece)?))?;
        out.flush()?;
        Ok(())
    }
}
