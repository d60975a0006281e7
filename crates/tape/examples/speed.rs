//! Measures block encoding and decoding on the output of real programs: `speed FILE…`, in release.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement that prints times")]

use std::time::Instant;

use bytes::Bytes;
use tapdeck_tape::ahr::{BlockBuilder, BlockItem, BlockReader, Quality, Record, Summary};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let data = Bytes::from(std::fs::read(&path)?);
        let rate = |t: Instant| data.len() as f64 / t.elapsed().as_secs_f64() / 1e6;
        for quality in [Quality::Stored, Quality::Brotli(0), Quality::Brotli(1), Quality::Brotli(4)] {
            let mut best = [0_f64; 3];
            let mut size = 0;
            for _ in 0..3 {
                let start = Instant::now();
                let file = encode(&data, quality);
                best[0] = best[0].max(rate(start));
                size = file.len();
                let start = Instant::now();
                let mut blocks = BlockReader::new(&file[..]);
                while let Some(item) = blocks.next_item()? {
                    assert!(matches!(item, BlockItem::Block(_)));
                }
                best[1] = best[1].max(rate(start));
                let start = Instant::now();
                assert!(Summary::of(&file[..])?.output_bytes == data.len() as u64);
                best[2] = best[2].max(rate(start));
            }
            println!(
                "{path} {quality:?}: ratio {:.2}, MB/s: encode {:.0}, decode {:.0}, decode and count {:.0}",
                data.len() as f64 / size as f64,
                best[0],
                best[1],
                best[2]
            );
        }
    }
    Ok(())
}

fn encode(data: &Bytes, quality: Quality) -> Vec<u8> {
    let mut builder = BlockBuilder::new(0);
    let mut file = Vec::with_capacity(data.len() / 4);
    for start in (0..data.len()).step_by(4095) {
        let piece = data.slice(start..data.len().min(start + 4095));
        let ts = 1_700_000_000_000_000_000 + start as u64 * 11;
        let mut rest = Some(Record::data(ts, start as u64, piece));
        while let Some(record) = rest {
            rest = builder.push(record);
            if builder.is_full() {
                file.extend_from_slice(builder.finish(quality, false));
            }
        }
    }
    file.extend_from_slice(builder.finish(quality, true));
    file
}
