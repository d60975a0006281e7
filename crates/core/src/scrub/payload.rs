//! Text inside sequences: titles, links, folders, the clipboard. The sequence stays as it is;
//! characters of its payload are masked. What is packed inside (base64 of the clipboard, percent
//! signs of addresses) is unpacked to be read.

use tapdeck_term::{Glyph, Kind, char_width};

use super::eye::Eye;
use super::report::Stream;
use super::rules::MASK;
use crate::base64;
use crate::log::Offset;

impl Eye {
    pub(super) fn judge_payload(&mut self, kind: Kind, data: &[u8], at: u64) {
        if data.len() < 4 {
            return;
        }
        if kind == Kind::Osc && data.starts_with(b"52;") && self.clipboard(data, at) {
            return;
        }
        let text = String::from_utf8_lossy(data);
        if text.len() == data.len() {
            self.judge(Stream::Output, &text, &glyphs(&text, at));
        } else {
            // Not text as a whole: the parts of it that are.
            let printable = |b: &u8| (0x20..0x7f).contains(b);
            let mut start = 0;
            for part in data.split(|b| !printable(b)) {
                if let Ok(text) = std::str::from_utf8(part) {
                    self.judge(Stream::Output, text, &glyphs(text, at + start as u64));
                }
                start += part.len() + 1;
            }
        }
        if kind == Kind::Osc && memchr::memchr(b'%', data).is_some() {
            self.percent(data, at);
        }
    }

    /// OSC 52: what is put on the clipboard, in base64. False: it is not.
    fn clipboard(&mut self, data: &[u8], at: u64) -> bool {
        let Some(start) = data[3..].iter().position(|b| *b == b';').map(|i| i + 4) else { return false };
        let Ok(packed) = std::str::from_utf8(&data[start..]) else { return false };
        let Some(plain) = base64::decode(packed) else { return false };
        let text = String::from_utf8_lossy(&plain);
        if text.len() != plain.len() {
            return false;
        }
        let mut masked = plain.clone();
        let mut from = 0;
        for line in text.split_inclusive('\n') {
            let found = self.find(line);
            for f in &found {
                let mut length = 0;
                for (i, c) in line[f.range.clone()].char_indices() {
                    let i = from + f.range.start + i;
                    let done = masked[i] == MASK as u8;
                    // All of the character's bytes: what is unpacked is no text that must keep its
                    // width.
                    if !done && !self.rules.keep(f.rule).contains(c) && c != ' ' {
                        masked[i..i + c.len_utf8()].fill(MASK as u8);
                        length += 1;
                    }
                }
                if length > 0 {
                    self.count(f.rule, Stream::Output, at + start as u64, length);
                }
            }
            self.done(found);
            from += line.len();
        }
        let again = base64::encode(&masked);
        if masked != plain && again.len() == packed.len() && !self.output.touches(Offset(at), data.len()) {
            self.output.bytes_at(at + start as u64, again.as_bytes());
        }
        true
    }

    /// Addresses with percent signs, read as they are meant.
    fn percent(&mut self, data: &[u8], at: u64) {
        let mut bytes = Vec::with_capacity(data.len());
        let mut places: Vec<(u64, u8)> = Vec::with_capacity(data.len());
        let digit = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
        let mut i = 0;
        while i < data.len() {
            match (data[i], digit(data.get(i + 1)), digit(data.get(i + 2))) {
                (b'%', Some(high), Some(low)) => {
                    bytes.push((high * 16 + low) as u8);
                    places.push((at + i as u64, 3));
                    i += 3;
                }
                (b, ..) => {
                    bytes.push(b);
                    places.push((at + i as u64, 1));
                    i += 1;
                }
            }
        }
        let Ok(text) = std::str::from_utf8(&bytes) else { return };
        let found = self.find(text);
        for f in &found {
            let mut length = 0;
            for (byte, (place, n)) in bytes[f.range.clone()].iter().zip(&places[f.range.clone()]) {
                let free = !self.output.touches(Offset(*place), usize::from(*n)) && *byte != MASK as u8;
                let kept = self.rules.keep(f.rule).as_bytes().contains(byte) || *byte == b' ';
                if !free || kept {
                    continue;
                }
                match n {
                    3 => self.output.bytes_at(*place, b"%2A"),
                    _ if byte.is_ascii() => self.output.stars(*place, 1),
                    _ => continue,
                }
                length += 1;
            }
            if length > 0 {
                self.count(f.rule, Stream::Output, places[f.range.start].0, length);
            }
        }
        self.done(found);
    }
}

fn glyphs(text: &str, at: u64) -> Vec<Glyph> {
    let one = |(i, c): (usize, char)| Glyph {
        c,
        width: char_width(c) as u8,
        len: c.len_utf8() as u8,
        at: at + i as u64,
    };
    text.char_indices().map(one).collect()
}
