//! The index that is added to a recording: whatever a power cut leaves of it, each moment of the
//! recording shows the same screen as without it.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tapdeck::tape::ahr::parts::INDEX;
use tapdeck::tape::index::{IndexOptions, build_index};
use tapdeck::{LiveIndex, RecordOptions, Recording};
use tapdeck_host::{Addition, IfExists, append_part};

use crate::recorder::Live;
use crate::{Judge, Round};

const MOMENTS: u32 = 4;

fn screens(path: &Path, end: Duration) -> Result<Vec<String>, String> {
    let mut recording = Recording::open(path).map_err(|e| e.to_string())?;
    let at = |moment| {
        recording.seek(end * moment / MOMENTS).map_err(|e| e.to_string())?;
        Ok(recording.screen().to_string())
    };
    (0..=MOMENTS).map(at).collect()
}

pub(crate) fn rebuilt(round: &mut Round<'_>) -> Judge {
    let path = round.root.join("demo.ahr");
    let options = RecordOptions::default().index(LiveIndex::Off);
    let live = Live::start(&path, IfExists::Refuse, options).expect("a recorder");
    for _ in 0..6 {
        live.write(&round.rng.text(3000));
        live.flush();
    }
    live.finish();
    let end = Recording::open(&path).and_then(|r| r.duration()).expect("a recording");
    let expected = screens(&path, end).expect("a recording");
    if round.rng.chance(2) {
        // One of another recording.
        append_part(&path, INDEX, &[&b"AHXI"[..], &round.rng.text(5000)].concat()).expect("appended");
    }
    round.begin();
    for every in [3000, 1500] {
        let mut addition = Addition::begin(&path).expect("opened");
        let recording = File::open(&path).expect("a recording");
        build_index::<tapdeck::tape::Error>(recording, IndexOptions::default().every_bytes(every), |piece| {
            addition.add(INDEX, piece).expect("written");
            Ok(())
        })
        .expect("an index");
        addition.commit().expect("synced");
    }
    Box::new(move |_, _, _| {
        let found = screens(&path, end)?;
        match found.iter().zip(&expected).position(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(n) => Err(format!("another screen than without an index:\n{}\n{}", found[n], expected[n])),
        }
    })
}
