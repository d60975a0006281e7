//! Bytes to text for formats that can only carry text. Chunks end anywhere, so a character may be
//! split between two; what can never become a character is replaced and counted.

/// Decodes chunk after chunk.
#[derive(Debug, Default)]
pub(crate) struct Utf8 {
    held: Vec<u8>,
}

impl Utf8 {
    /// Text of `bytes`, after what was held back; the number of bytes replaced. An unfinished
    /// character at the end is held back.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) -> usize {
        if self.held.is_empty() {
            return self.decode(bytes, out);
        }
        let mut joined = std::mem::take(&mut self.held);
        joined.extend_from_slice(bytes);
        self.decode(&joined, out)
    }

    /// The end of the stream: an unfinished character is replaced after all.
    pub(crate) fn finish(&mut self, out: &mut String) -> usize {
        let lost = self.held.len();
        if lost > 0 {
            out.push('\u{fffd}');
            self.held.clear();
        }
        lost
    }

    fn decode(&mut self, mut bytes: &[u8], out: &mut String) -> usize {
        let mut lost = 0;
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => {
                    out.push_str(text);
                    return lost;
                }
                Err(error) => error,
            };
            let (good, bad) = bytes.split_at(error.valid_up_to());
            // Checked a moment ago, so nothing is replaced here.
            out.push_str(&String::from_utf8_lossy(good));
            let Some(len) = error.error_len() else {
                self.held.extend_from_slice(bad);
                return lost;
            };
            out.push('\u{fffd}');
            lost += len;
            bytes = &bad[len..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_split_between_chunks_is_not_lost() {
        let text = "a€😀é";
        for cut in 0..text.len() {
            let (mut decoder, mut out) = (Utf8::default(), String::new());
            let (a, b) = text.as_bytes().split_at(cut);
            assert_eq!(decoder.push(a, &mut out) + decoder.push(b, &mut out) + decoder.finish(&mut out), 0);
            assert_eq!(out, text);
        }
        let (mut decoder, mut out) = (Utf8::default(), String::new());
        assert_eq!(decoder.push(b"x\xffy\xe2\x82", &mut out), 1);
        assert_eq!(decoder.finish(&mut out), 2);
        assert_eq!(out, "x\u{fffd}y\u{fffd}");
    }
}
