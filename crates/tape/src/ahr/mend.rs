//! Times and offsets of a block's records, put right where those around them prove them wrong. A
//! format without checksums says most things twice, in a header and in a record, and in order: that
//! is what there is to go by.

use bytes::Buf;

use super::header::Header;
use super::record::{Body, MAX_GAP, Record};
use super::times::{NEVER, falls, leaps};

/// What is known from around a block's records.
pub(super) struct Around {
    /// The block's own header.
    pub(super) header: Header,
    /// Whether the block held more than could be read.
    pub(super) partial: bool,
    /// Time of the record before.
    pub(super) last_ts: Option<u64>,
    /// Time of the record behind.
    pub(super) next_ts: Option<u64>,
    /// Where the next block's output begins: as its header has it, and as its first DATA does.
    pub(super) next_starts: Option<(u64, Option<u64>)>,
}

/// Puts times right; says whether any was wrong.
pub(super) fn mend_times(records: &mut [Record], around: &Around) -> bool {
    let mut changed = false;
    let (start, next_ts) = (around.header.start_ts_ns, around.next_ts);
    let mut last = around.last_ts.unwrap_or(start);
    for i in 0..records.len() {
        let behind = records.get(i + 1).map(|r| r.ts_ns).or(next_ts);
        let ts = records[i].ts_ns;
        // One damaged byte of a compressed block can show in many times: the next block bears none
        // of that.
        let sure = next_ts.or(behind);
        let mended = match (behind, sure) {
            (Some(behind), _) if leaps(last, ts, behind) => behind,
            (_, Some(sure)) if sure >= last && ts.saturating_sub(sure) > NEVER => sure,
            // Nothing comes before the first block, but its time stands in its header too.
            (_, Some(sure)) if around.last_ts.is_none() && falls(start, ts, sure) => last,
            // Behind the last block there is none; a header of its own still vouches for a
            // recording continued years later.
            _ if next_ts.is_none()
                && (i > 0 || around.last_ts.is_some())
                && ts.saturating_sub(last.max(start)) > NEVER =>
            {
                last
            }
            _ => ts,
        };
        changed |= mended != ts;
        records[i].ts_ns = mended;
        last = mended;
    }
    changed
}

/// Where a block's output came to lie.
pub(super) struct Placed {
    /// Whether a record was changed, cut or left out.
    pub(super) changed: bool,
    /// Where its output begins; of a block without any, where output stands.
    pub(super) start: u64,
    /// Where output stands behind it.
    pub(super) end: u64,
    /// Bytes of output that are missing before and in it.
    pub(super) missing: u64,
    /// The first DATA with output missing before it.
    pub(super) gap_at: Option<usize>,
}

/// Gives every DATA a place that it can have, behind `from`, where output stood before the block:
/// none begins before the end of the one before, and none ends behind the beginning of the next
/// block.
pub(super) fn mend_offsets(records: &mut Vec<Record>, from: u64, around: &Around) -> Placed {
    let mut total = length(&*records);
    let says = around.header.start_byte_off;
    let limit = limit(from, total, around);
    let mut changed = false;
    if around.partial
        && let Some(limit) = limit
    {
        // The last that could be read of a damaged block may be noise.
        while total > limit - from {
            total -= records.pop().map_or(total, |record| length([&record]));
            changed = true;
        }
    }
    let mut rest = total;
    // Whether output may begin there with so much to come.
    let fits = |at: u64, from: u64, rest: u64| match limit {
        Some(limit) => at >= from && at.checked_add(rest).is_some_and(|end| end <= limit),
        None => at >= from && at - from <= MAX_GAP,
    };
    let mut offs =
        records.iter().filter_map(|r| if let Body::Data { off, .. } = r.body { Some(off) } else { None });
    let Some(first) = offs.next() else {
        let start = if fits(says, from, 0) { says } else { from };
        return Placed { changed, start, end: start, missing: start - from, gap_at: None };
    };
    let mut behind: Vec<u64> = offs.chain(limit).collect();
    behind.reverse();
    let head = records.iter().find(|r| matches!(r.body, Body::Data { .. }));
    let goes_on = behind.last() == Some(&from.saturating_add(length(head)));
    let start = if first == from || says == from || goes_on {
        from
    } else if first == says {
        first
    } else {
        [first, says].into_iter().filter(|&at| fits(at, from, rest)).min().unwrap_or(from)
    };
    let mut placed = Placed { changed, start: start.max(from), end: from, missing: 0, gap_at: None };
    let mut next = start;
    let mut at_first = true;
    let mut spent = Vec::new();
    for (i, record) in records.iter_mut().enumerate() {
        let Body::Data { off, bytes } = &mut record.body else { continue };
        let len = bytes.len() as u64;
        let expected = next;
        let hint = behind.pop();
        let proven = hint == Some(expected.saturating_add(len));
        let free = !std::mem::take(&mut at_first) && !proven && fits(*off, expected, rest);
        let place = if free { *off } else { expected };
        placed.changed |= place != *off;
        *off = place;
        next = place.saturating_add(len);
        rest -= len;
        // What is there already is not written twice.
        let twice = placed.end.saturating_sub(place).min(len);
        if twice > 0 {
            placed.changed = true;
            *off += twice;
            bytes.advance(twice as usize);
            if bytes.is_empty() {
                spent.push(i);
                continue;
            }
        }
        let gap = *off - placed.end;
        if gap > 0 {
            placed.gap_at.get_or_insert(i);
            placed.missing = placed.missing.saturating_add(gap);
        }
        placed.end = next;
    }
    for i in spent.into_iter().rev() {
        records.remove(i);
        placed.gap_at = placed.gap_at.map(|at| if at > i { at - 1 } else { at });
    }
    placed
}

/// Where the block's output must have ended, if what comes behind can be believed.
fn limit(from: u64, total: u64, around: &Around) -> Option<u64> {
    let (says, first) = around.next_starts?;
    let first = first.unwrap_or(says);
    let end = from.saturating_add(total);
    let room = |at: u64| at >= if around.partial { from } else { end };
    if says == first {
        return Some(says).filter(|&at| room(at));
    }
    // One of them is wrong, and there it matters which one fits here.
    [says, first]
        .into_iter()
        .find(|&at| at == end)
        .or_else(|| [says, first].into_iter().filter(|&at| room(at)).min())
}

/// Bytes of output.
fn length<'a>(records: impl IntoIterator<Item = &'a Record>) -> u64 {
    records
        .into_iter()
        .map(|r| if let Body::Data { bytes, .. } = &r.body { bytes.len() as u64 } else { 0 })
        .sum()
}
