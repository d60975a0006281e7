//! Bytes to text, for readers that show or store text.
//!
//! The log stores bytes. A reader that shows text decodes them incrementally with one of these, in
//! any encoding known by its label, so that a character split across two reads is still one
//! character. What cannot be decoded becomes U+FFFD, and a stream that ends inside a character says
//! so when finished.

use std::fmt;

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8};

/// The label names no encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding {label:?}: use a name such as utf-8, latin-1, shift_jis or koi8-r")]
#[non_exhaustive]
pub struct UnknownEncoding {
    /// The label as given.
    pub label: String,
}

/// Decodes bytes to text piece by piece.
pub struct TextDecoder {
    kind: Kind,
}

impl fmt::Debug for TextDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoding = match &self.kind {
            Kind::Latin1 => "latin-1",
            Kind::Table(decoder) => decoder.encoding().name(),
        };
        f.debug_tuple("TextDecoder").field(&encoding).finish()
    }
}

enum Kind {
    /// Byte n is code point n. Not windows-1252, which is what the web's label table makes of
    /// "latin1": this one is byte-transparent, as callers that name it expect.
    Latin1,
    Table(Decoder),
}

impl Default for TextDecoder {
    fn default() -> Self {
        Self { kind: Kind::Table(UTF_8.new_decoder_without_bom_handling()) }
    }
}

impl TextDecoder {
    /// A decoder for the encoding that `label` names.
    pub fn new(label: &str) -> Result<Self, UnknownEncoding> {
        let name = label.trim().to_ascii_lowercase();
        if matches!(name.as_str(), "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1") {
            return Ok(Self { kind: Kind::Latin1 });
        }
        let encoding = Encoding::for_label(name.as_bytes())
            .ok_or_else(|| UnknownEncoding { label: label.to_owned() })?;
        Ok(Self { kind: Kind::Table(encoding.new_decoder_without_bom_handling()) })
    }

    /// Decodes `bytes` onto the end of `text`.
    pub fn decode(&mut self, bytes: &[u8], text: &mut String) {
        self.push(bytes, text, false);
    }

    /// Ends the stream: an unfinished character becomes U+FFFD. The decoder must not be used again.
    pub fn finish(mut self, text: &mut String) {
        self.push(&[], text, true);
    }

    fn push(&mut self, mut bytes: &[u8], text: &mut String, last: bool) {
        match &mut self.kind {
            Kind::Latin1 => text.extend(bytes.iter().copied().map(char::from)),
            Kind::Table(decoder) => loop {
                let room = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len());
                text.reserve(room.max(16));
                let (result, read, _) = decoder.decode_to_string(bytes, text, last);
                bytes = &bytes[read..];
                if result == CoderResult::InputEmpty {
                    break;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(label: &str, chunks: &[&[u8]]) -> String {
        let mut decoder = TextDecoder::new(label).expect("known label");
        let mut text = String::new();
        for chunk in chunks {
            decoder.decode(chunk, &mut text);
        }
        decoder.finish(&mut text);
        text
    }

    #[test]
    fn labels() {
        assert_eq!(decode("UTF-8", &[b"\xe2\x82", b"\xac"]), "€");
        assert_eq!(decode("utf8", &[b"a\xffb"]), "a\u{fffd}b");
        assert_eq!(decode("utf-8", &[b"\xef\xbb\xbfx"]), "\u{feff}x", "a BOM is output like any other");
        assert_eq!(decode("latin-1", &[b"\x80\xe9"]), "\u{80}é");
        assert_eq!(decode("shift_jis", &[b"\x82", b"\xa0"]), "あ");
        assert_eq!(decode("koi8-r", &[b"\xc1"]), "а");
        assert!(TextDecoder::new("klingon").is_err());
    }

    #[test]
    fn an_unfinished_character_is_flushed_at_the_end() {
        assert_eq!(decode("utf-8", &[b"ok\xf0\x9f"]), "ok\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_text(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
            let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
            prop_assert_eq!(decode("utf-8", &[a, b]), String::from_utf8_lossy(&bytes));
        }
    }
}
