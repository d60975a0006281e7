//! Pictures of text: a screen with what matters marked, two texts side by side, the events around
//! a moment.

use tapdeck_core::check::{Failure, Frame, Pos, Row, Spot, Timeline, What, quote, seconds};
use tapdeck_term::printable;

/// Moments shown before and after the one that a report is about.
const AROUND: usize = 4;

/// A screen: rows with numbers, and carets under what matters.
pub(crate) fn screen(label: &str, frame: &Frame, spots: &[Spot]) -> String {
    let mut out = String::new();
    let (size, cursor) = (frame.size, frame.cursor);
    let hidden = if cursor.visible { "" } else { ", hidden" };
    out.push_str(&format!(
        "  {label} ({}x{}, cursor at {},{}{hidden}{})\n",
        size.cols,
        size.rows,
        cursor.row + 1,
        cursor.col + 1,
        if frame.modes.alternate() { ", alternate screen" } else { "" }
    ));
    let last_text = frame.rows.iter().rposition(|r| !r.text().is_empty());
    let last_spot = spots.iter().map(|s| usize::from(s.row)).max();
    let Some(last) = last_text.max(last_spot) else {
        return out + "     (blank)\n";
    };
    for (y, row) in frame.rows.iter().enumerate().take(last + 1) {
        out.push_str(&format!("  {:3} │{}\n", y + 1, printable(row.text())));
        let mut carets = String::new();
        for spot in spots.iter().filter(|s| usize::from(s.row) == y) {
            let col = usize::from(spot.col);
            let width = usize::from(spot.width.max(1)).min(usize::from(size.cols).saturating_sub(col).max(1));
            let len = carets.chars().count();
            carets.extend(std::iter::repeat_n(' ', col.saturating_sub(len)));
            carets.extend(std::iter::repeat_n('^', (col + width).saturating_sub(len.max(col))));
        }
        if !carets.is_empty() {
            out.push_str(&format!("      │{carets}\n"));
        }
    }
    let blank = frame.rows.len().saturating_sub(last + 1);
    if blank > 0 {
        out.push_str(&format!("      │… {blank} blank row{}\n", if blank == 1 { "" } else { "s" }));
    }
    out
}

/// Expected and shown text, row by row; only what differs, with its neighbours.
pub(crate) fn difference(expected: &str, shown: &str) -> String {
    let (want, have): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), shown.lines().collect());
    let rows = want.len().max(have.len());
    let row = |list: &[&str], i: usize| list.get(i).copied().unwrap_or_default().to_owned();
    let differs: Vec<bool> = (0..rows).map(|i| row(&want, i) != row(&have, i)).collect();
    let mut out = String::from("  the difference (- expected, + shown)\n");
    let mut gap = false;
    for i in 0..rows {
        let near = differs[i.saturating_sub(1)..(i + 2).min(rows)].contains(&true);
        if !near {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) {
            out.push_str("      ⋮\n");
        }
        let (w, h) = (row(&want, i), row(&have, i));
        if !differs[i] {
            out.push_str(&format!("  {:3}   {}\n", i + 1, printable(&h)));
            continue;
        }
        out.push_str(&format!("  {:3} - {}\n", i + 1, printable(&w)));
        out.push_str(&format!("      + {}\n", printable(&h)));
        let same = w.chars().zip(h.chars()).take_while(|(a, b)| a == b);
        let at: usize = same.map(|(a, _)| a.len_utf8()).sum();
        let tail = |s: &str| s[at..].chars().rev().collect::<Vec<_>>();
        let back = tail(&w).into_iter().zip(tail(&h)).take_while(|(a, b)| a == b);
        let end: usize = h.len() - back.map(|(a, _)| a.len_utf8()).sum::<usize>();
        let shown = Row::from_text(&h);
        let (from, to) = (shown.column(at), shown.column(end.max(at)));
        let carets = "^".repeat(usize::from(to.saturating_sub(from)).max(1));
        out.push_str(&format!("        {}{carets}\n", " ".repeat(usize::from(from))));
    }
    out
}

/// What happened around a place.
pub(crate) fn around(timeline: &Timeline, at: Pos) -> String {
    let moments = &timeline.moments;
    let next = moments.partition_point(|m| m.at <= at);
    let (from, to) = (next.saturating_sub(AROUND), (next + AROUND).min(moments.len()));
    let mut out = format!("  what happened around {}\n", seconds(at.time));
    if from > 0 {
        out.push_str(&format!("      ⋮ {from} before\n"));
    }
    for (i, moment) in moments.iter().enumerate().take(to).skip(from) {
        let mark = if i + 1 == next { "▶" } else { " " };
        out.push_str(&format!("    {mark} {:>8}  {}\n", seconds(moment.at.time), event(&moment.what)));
    }
    match moments.len() - to {
        0 => {
            out.push_str(&format!("      {:>8}  the end\n", seconds(timeline.end.at.time)));
        }
        n => {
            out.push_str(&format!("      ⋮ {n} after\n"));
        }
    }
    out
}

/// A moment in one line.
fn event(what: &What) -> String {
    let bytes = |b: &[u8]| {
        let head = quote(&b[..b.len().min(48)]);
        if b.len() > 48 { format!("{head}… ({} bytes)", b.len()) } else { head }
    };
    match what {
        What::Output(b) => format!("output {}", bytes(b)),
        What::Input(i) => {
            let kind = if i.reply {
                "answer"
            } else if i.paste {
                "paste"
            } else {
                "input"
            };
            let key = i.key.as_ref().map(|k| format!("{k} ")).unwrap_or_default();
            format!("{kind} {key}{}", bytes(&i.bytes))
        }
        What::Resize(size) => format!("size {}x{}", size.cols, size.rows),
        What::Signal(name) => format!("signal {name}"),
        What::Service(value) => {
            let text: String = value.to_string().chars().take(80).collect();
            format!("service event {}", printable(&text))
        }
        What::Mark(name) => format!("@{name}"),
        _ => String::new(),
    }
}

/// Everything about a failed claim.
pub(crate) fn failure(failure: &Failure, timeline: &Timeline) -> String {
    let mut out = String::new();
    if let Some((expected, shown)) = &failure.texts {
        out.push_str(&difference(expected, shown));
    }
    for (i, shot) in failure.shots.iter().enumerate() {
        // Where the texts differ has been shown row by row already.
        let spots = if i == 0 && failure.texts.is_some() { &[][..] } else { &shot.spots };
        out.push_str(&screen(&shot.label, &shot.frame, spots));
    }
    if let Some(at) = failure.at {
        out.push_str(&around(timeline, at));
    }
    out
}
