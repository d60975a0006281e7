//! Measures replay, indexing and seeking on a large recording: `seek FILE.raw MEGABYTES`, in release.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement that prints times")]

use std::io::Cursor;
use std::time::Instant;

use bytes::Bytes;
use tapdeck_tape::Replay;
use tapdeck_tape::ahr::{AhrEvents, BlockBuilder, BlockItem, BlockReader, Quality, Reader, Record};
use tapdeck_tape::index::{Index, IndexOptions, Seeker, Target, build_index};
use tapdeck_term::{Settings, Size, Term};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, megabytes] = &args[..] else { return Err("seek FILE.raw MEGABYTES".into()) };
    let data = Bytes::from(std::fs::read(path)?);
    let total = megabytes.parse::<usize>()? << 20;
    let mut builder = BlockBuilder::new(0);
    let mut file = Vec::new();
    let mut off = 0;
    let _ = builder.push(Record::resize(1, 120, 40));
    while off < total {
        let at = off % data.len();
        let piece = data.slice(at..data.len().min(at + 16_384));
        let mut rest = Some(Record::data(off as u64 * 11, off as u64, piece.clone()));
        off += piece.len();
        while let Some(record) = rest {
            rest = builder.push(record);
            if builder.is_full() {
                file.extend_from_slice(builder.finish(Quality::default(), false));
            }
        }
    }
    file.extend_from_slice(builder.finish(Quality::default(), true));
    let rate = |t: Instant| off as f64 / t.elapsed().as_secs_f64() / 1e6;
    println!("{off} bytes of output in {} bytes", file.len());

    let settings = Settings { scrollback: 10_000, replies: false, ..Settings::default() };
    let mut term = Term::new(Size::new(120, 40), settings);
    let start = Instant::now();
    for at in (0..data.len()).step_by(16_384) {
        let _ = term.feed(&data[at..data.len().min(at + 16_384)], at as u64);
    }
    println!("model alone: {:.0} MB/s", data.len() as f64 / start.elapsed().as_secs_f64() / 1e6);

    let start = Instant::now();
    let mut blocks = BlockReader::new(&file[..]);
    while let Some(BlockItem::Block(_)) = blocks.next_item()? {}
    println!("decode alone: {:.0} MB/s", rate(start));

    let start = Instant::now();
    let mut reader = AhrEvents::new(&file[..], None, Default::default())?;
    let replay = Replay::to_end(&mut reader, 10_000)?;
    println!("read and feed: {:.0} MB/s, {:.3} s", rate(start), start.elapsed().as_secs_f64());

    let start = Instant::now();
    let mut blocks = BlockReader::new(Cursor::new(Bytes::from(file.clone())));
    let (send, items) = std::sync::mpsc::sync_channel(8);
    std::thread::spawn(move || {
        while let Some(item) = blocks.next_item().transpose() {
            if send.send(item).is_err() {
                break;
            }
        }
    });
    let ahead: Reader<std::io::Empty> = Reader::given(move || items.recv().ok().transpose());
    let mut reader = AhrEvents::over(ahead, None, Default::default())?;
    let ahead = Replay::to_end(&mut reader, 10_000)?;
    println!("read ahead and feed: {:.0} MB/s", rate(start));
    assert_eq!(ahead.byte_off(), replay.byte_off());

    let start = Instant::now();
    let mut ahx = Vec::new();
    build_index::<tapdeck_tape::Error>(&file[..], IndexOptions::default(), |piece| {
        ahx.extend_from_slice(piece);
        Ok(())
    })?;
    println!("index: {:.0} MB/s, {} bytes", rate(start), ahx.len());

    let start = Instant::now();
    let mut index = Index::load(Cursor::new(&ahx))?;
    assert!(index.check(Cursor::new(&file))?);
    let opened = start.elapsed();
    let mut seeker = Seeker::new(Cursor::new(&file), Some((index, Cursor::new(&ahx))), 0);
    let mut worst = 0.0_f64;
    for i in 1..50 {
        let start = Instant::now();
        let head = seeker.seek(Target::Time(replay.time_ns() / 50 * i))?;
        assert!(head.byte_off > 0);
        worst = worst.max(start.elapsed().as_secs_f64());
    }
    println!(
        "open index and check: {:.1} ms; worst of 49 jumps: {:.1} ms",
        opened.as_secs_f64() * 1e3,
        worst * 1e3
    );
    Ok(())
}
