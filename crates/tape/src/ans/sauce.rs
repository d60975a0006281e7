//! SAUCE, the 128 bytes at the end of a piece of DOS art that tell its title, author and size, and
//! the comments that may stand before them.

/// Length of the record.
pub(crate) const LEN: usize = 128;
/// Length of a comment line.
const COMMENT: usize = 64;

/// What a SAUCE record says. Text is in code page 437, without its padding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sauce {
    /// Title, at most 35 bytes.
    pub(crate) title: Vec<u8>,
    /// Author, at most 20 bytes.
    pub(crate) author: Vec<u8>,
    /// Group, at most 20 bytes.
    pub(crate) group: Vec<u8>,
    /// Date as `CCYYMMDD`.
    pub(crate) date: Vec<u8>,
    /// Columns; 0 when unknown.
    pub(crate) width: u16,
    /// Rows; 0 when unknown.
    pub(crate) height: u16,
    /// Comment lines.
    pub(crate) comments: Vec<Vec<u8>>,
}

impl Sauce {
    /// Finds the record at the end of a file, and where the art ends: before the end-of-file mark,
    /// the comments and the record, as far as these are true.
    pub(crate) fn find(file: &[u8]) -> Option<(Self, usize)> {
        let start = file.len().checked_sub(LEN)?;
        let b = &file[start..];
        if !b.starts_with(b"SAUCE") {
            return None;
        }
        let field = |from: usize, len: usize| {
            let text = &b[from..from + len];
            let end = text.iter().rposition(|&c| c != b' ' && c != 0).map_or(0, |i| i + 1);
            text[..end].to_vec()
        };
        let word = |at: usize| u16::from_le_bytes([b[at], b[at + 1]]);
        // The number of comment lines is believed only when the block is there.
        let count = usize::from(b[104]);
        let comments = start
            .checked_sub(5 + COMMENT * count)
            .filter(|&at| count > 0 && file[at..].starts_with(b"COMNT"));
        let lines = comments.map_or(&[][..], |at| &file[at + 5..start]);
        let sauce = Self {
            title: field(7, 35),
            author: field(42, 20),
            group: field(62, 20),
            date: field(82, 8),
            width: word(96),
            height: word(98),
            comments: lines.chunks(COMMENT).map(|line| line.trim_ascii_end().to_vec()).collect(),
        };
        let end = comments.unwrap_or(start);
        let end = if end > 0 && file[end - 1] == 0x1a { end - 1 } else { end };
        Some((sauce, end))
    }

    /// The end-of-file mark and the record, to follow art of `art_len` bytes.
    pub(crate) fn to_bytes(&self, art_len: u64) -> Vec<u8> {
        let mut out = vec![0x1a];
        let lines = &self.comments[..self.comments.len().min(255)];
        if !lines.is_empty() {
            out.extend_from_slice(b"COMNT");
            lines.iter().for_each(|line| pad(&mut out, line, COMMENT));
        }
        out.extend_from_slice(b"SAUCE00");
        pad(&mut out, &self.title, 35);
        pad(&mut out, &self.author, 20);
        pad(&mut out, &self.group, 20);
        pad(&mut out, &self.date, 8);
        out.extend_from_slice(&u32::try_from(art_len).unwrap_or(0).to_le_bytes());
        // Character art, ANSi.
        out.extend_from_slice(&[1, 1]);
        out.extend_from_slice(&self.width.to_le_bytes());
        out.extend_from_slice(&self.height.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.push(lines.len() as u8);
        // Flags and the name of the font, both unset.
        out.extend_from_slice(&[0; 23]);
        out
    }
}

fn pad(out: &mut Vec<u8>, text: &[u8], len: usize) {
    let text = &text[..text.len().min(len)];
    out.extend_from_slice(text);
    out.resize(out.len() + len - text.len(), b' ');
}
