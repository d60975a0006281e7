//! `.ans`: DOS art. Bytes of code page 437 with ANSI escape sequences, ended by 0x1A, and a SAUCE
//! record. There are no times; a modem's speed can be asked for, which is how the art was meant to
//! be seen.

mod cp437;
mod sauce;

use std::io::Read;

use bytes::Bytes;
use tapdeck_core::Time;

use tapdeck_term::Size;

use crate::event::{
    Event, EventReader, EventWriter, Field, Header, Item, Kind, Loss, Losses, Parts, clamp_size,
};
use crate::utf8::Utf8;
use crate::window::Window;
use crate::{Error, FilePosition, Result};

pub(crate) use sauce::Sauce;

/// The size stands at the end of the file, so it is read whole; the largest known art is some
/// megabytes.
const MAX_FILE: usize = 32 << 20;
/// Events are made of so much at a time.
const CHUNK: usize = 4096;

/// Reads a piece of art as UTF-8 output.
#[derive(Debug)]
pub(crate) struct AnsReader {
    art: Bytes,
    header: Header,
    pos: usize,
    baud: Option<u32>,
}

impl AnsReader {
    /// Reads the file. With `baud`, bytes come as over a line of that speed (ten bits a byte);
    /// without, all at once.
    ///
    /// # Errors
    /// When the reader fails or the file is far too large.
    pub(crate) fn new(inner: impl Read, baud: Option<u32>) -> Result<Self> {
        let mut window = Window::new(inner, 0);
        if window.fill(MAX_FILE + 1)? > MAX_FILE {
            let what = format!("larger than {} MiB: not a piece of art", MAX_FILE >> 20);
            return Err(Error::malformed(FilePosition::Byte(MAX_FILE as u64), what));
        }
        let file = window.data();
        let (sauce, end) = Sauce::find(file).map_or((None, file.len()), |(sauce, end)| (Some(sauce), end));
        // Some files end at the mark without a record.
        let end = memchr::memchr(0x1a, &file[..end]).unwrap_or(end);
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            cp437::decode(bytes, &mut out);
            Some(String::from_utf8_lossy(&out).into_owned()).filter(|t| !t.is_empty())
        };
        let (width, height) = sauce.as_ref().map_or((0, 0), |s| (s.width, s.height));
        let header = Header {
            // The art is drawn for 80 columns unless it says otherwise, and is as tall as it is.
            size: Some(clamp_size(
                if width == 0 { 80 } else { width.into() },
                if height == 0 { 25 } else { height.into() },
            )),
            title: sauce.as_ref().and_then(|s| text(&s.title)),
            ..Header::default()
        };
        let art = Bytes::copy_from_slice(&file[..end]);
        Ok(Self { art, header, pos: 0, baud: baud.filter(|&b| b > 0) })
    }
}

impl EventReader for AnsReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        if self.pos == self.art.len() {
            return Ok(None);
        }
        // A modem delivers some bytes at a time; thirty times a second looks continuous.
        let step = self.baud.map_or(CHUNK, |baud| (baud as usize / 300).max(1));
        let end = self.art.len().min(self.pos + step);
        let nanos = |baud: u32| self.pos as u64 * 10 * 1_000_000_000 / u64::from(baud);
        let time = self.baud.map_or(Time::ZERO, |baud| Time::from_nanos(nanos(baud)));
        let mut out = Vec::with_capacity((end - self.pos) * 2);
        cp437::decode(&self.art[self.pos..end], &mut out);
        self.pos = end;
        Ok(Some(Item::Event(Event::new(time, Kind::Output(out.into())))))
    }

    fn position(&self) -> u64 {
        self.pos as u64
    }
}

/// Writes the output as one piece of ANSI art: characters that the
/// code page lacks become question marks, and are counted.
#[derive(Debug, Default)]
pub(crate) struct AnsWriter {
    sauce: Sauce,
    decoder: Utf8,
    len: u64,
    losses: Losses,
}

impl AnsWriter {
    fn text(&mut self, text: &str, out: &mut Parts) {
        let before = out.main.len();
        for c in text.chars() {
            // 0x1A would end the file.
            match cp437::encode(c).filter(|&b| b != 0x1a) {
                Some(byte) => out.main.push(byte),
                None => {
                    out.main.push(b'?');
                    self.losses.add(Loss::Characters, c.len_utf8());
                }
            }
        }
        self.len += (out.main.len() - before) as u64;
    }
}

impl EventWriter for AnsWriter {
    fn begin(&mut self, header: &Header, _: &mut Parts) {
        let encode = |text: &str| text.chars().map(|c| cp437::encode(c).unwrap_or(b'?')).collect();
        self.sauce.title = header.title.as_deref().map(encode).unwrap_or_default();
        self.losses.drop_fields(header, &[Field::Title, Field::Pipes]);
        let size = header.size.unwrap_or(Size::new(80, 25));
        (self.sauce.width, self.sauce.height) = (size.cols, size.rows);
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        if event.time > Time::ZERO && self.losses.of(Loss::Timing).events == 0 {
            self.losses.add(Loss::Timing, 0);
        }
        let Kind::Output(bytes) = &event.kind else {
            self.losses.drop_event(&event.kind);
            return;
        };
        let mut text = String::new();
        let lost = self.decoder.push(bytes, &mut text);
        if lost > 0 {
            self.losses.add(Loss::InvalidUtf8, lost);
        }
        self.text(&text, out);
    }

    fn finish(&mut self, out: &mut Parts) {
        let mut text = String::new();
        if self.decoder.finish(&mut text) > 0 {
            self.text(&text, out);
        }
        out.main.extend(self.sauce.to_bytes(self.len));
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{output_of, read_all, sample_events, write_all};

    #[test]
    fn art_is_cut_at_its_end_and_shown_in_its_characters() {
        let mut file = b"\x1b[31m\xdb\xb2 \x03 caf\x82\r\n".to_vec();
        let sauce = Sauce {
            title: b"T\x81r".to_vec(),
            width: 132,
            height: 50,
            comments: vec![b"one".to_vec(), b"two".to_vec()],
            ..Sauce::default()
        };
        file.extend(sauce.to_bytes(file.len() as u64));
        assert_eq!(file[file.len() - LEN_FROM_END..][..5], *b"SAUCE");
        assert_eq!(Sauce::find(&file).map(|(found, _)| found), Some(sauce));
        let (header, events, _) = read_all(AnsReader::new(&file[..], None).unwrap());
        assert_eq!((header.size, header.title.as_deref()), (Some(Size::new(132, 50)), Some("Tür")));
        assert_eq!(String::from_utf8(output_of(&events)).unwrap(), "\x1b[31m█▓ ♥ café\r\n");
    }

    const LEN_FROM_END: usize = sauce::LEN;

    #[test]
    fn a_record_that_lies_costs_nothing() {
        // A false count of comments made other readers cut into the art or read before its start.
        let sauce = Sauce { width: u16::MAX, height: 0, ..Sauce::default() };
        let mut file = b"art".to_vec();
        file.extend(sauce.to_bytes(3));
        let at = file.len() - LEN_FROM_END;
        file[at + 104] = 255;
        let (header, events, _) = read_all(AnsReader::new(&file[..], None).unwrap());
        assert_eq!(output_of(&events), b"art");
        assert_eq!(header.size, Some(Size::new(1000, 25)));
        for cut in 0..file.len() {
            read_all(AnsReader::new(&file[..cut], Some(9600)).unwrap());
        }
    }

    #[test]
    fn baud_spreads_the_bytes_over_time() {
        let (_, events, _) = read_all(AnsReader::new(&[b'x'; 9600][..], Some(9600)).unwrap());
        let last = events.last().unwrap().time.as_millis();
        assert!((9_900..10_000).contains(&last), "{last}");
    }

    #[test]
    fn what_the_code_page_lacks_is_counted() {
        let (header, events) = sample_events();
        let mut writer = AnsWriter::default();
        let file = write_all(&mut writer, &header, &events).main;
        let (_, got, _) = read_all(AnsReader::new(&file[..], None).unwrap());
        let text = String::from_utf8(output_of(&got)).unwrap();
        assert!(text.contains("schön ?") && text.ends_with("late\r\n"), "{text}");
        assert_eq!(writer.losses().of(Loss::Characters).events, 4);
    }
}
