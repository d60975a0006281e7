//! Just enough of tar for a cassette in one archive: plain files, their names and lengths. Written
//! as ustar; read as ustar with the extra headers of GNU and POSIX passed over, since the names of
//! a cassette's files are short.

use super::Refusal;

const BLOCK: usize = 512;

/// A member's header.
pub(crate) struct Member {
    /// The last part of its name.
    pub(crate) name: String,
    pub(crate) len: u64,
    /// Whether it is a plain file.
    pub(crate) plain: bool,
}

/// Header and padding around a file of this length.
pub(crate) fn header(folder: &str, name: &str, len: u64) -> [u8; BLOCK] {
    let mut h = [0_u8; BLOCK];
    let full = format!("{folder}/{name}");
    put(&mut h[..100], full.as_bytes());
    put(&mut h[100..108], b"0000644\0");
    put(&mut h[108..116], b"0000000\0");
    put(&mut h[116..124], b"0000000\0");
    put(&mut h[124..136], format!("{len:011o}\0").as_bytes());
    // No time: the same cassette gives the same archive.
    put(&mut h[136..148], b"00000000000\0");
    h[148..156].fill(b' ');
    h[156] = b'0';
    put(&mut h[257..265], b"ustar\x0000");
    let sum: u32 = h.iter().map(|&b| u32::from(b)).sum();
    put(&mut h[148..156], format!("{sum:06o}\0 ").as_bytes());
    h
}

fn put(field: &mut [u8], bytes: &[u8]) {
    let n = bytes.len().min(field.len());
    field[..n].copy_from_slice(&bytes[..n]);
}

/// Bytes that follow a file of this length up to the next header.
pub(crate) fn padding(len: u64) -> usize {
    (BLOCK - (len % BLOCK as u64) as usize) % BLOCK
}

/// What a header says; `None` for the empty block at the end.
pub(crate) fn parse(h: &[u8; BLOCK], at: u64) -> Result<Option<Member>, Refusal> {
    if h.iter().all(|&b| b == 0) {
        return Ok(None);
    }
    let bad = |what: &str| Refusal::Archive { at, what: what.into() };
    let sum: u32 =
        h.iter().enumerate().map(|(i, &b)| if (148..156).contains(&i) { 32 } else { u32::from(b) }).sum();
    if octal(&h[148..156]) != Some(u64::from(sum)) {
        return Err(bad("the header's checksum is wrong"));
    }
    let len = octal(&h[124..136]).ok_or_else(|| bad("the header's length is no number"))?;
    let name = h[..100].split(|&b| b == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    let plain = matches!(h[156], b'0' | 0);
    Ok(Some(Member { name: name.rsplit('/').next().unwrap_or_default().to_owned(), len, plain }))
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = field.split(|&b| b == 0).next()?.trim_ascii();
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0_u64, |n, &b| {
        matches!(b, b'0'..=b'7').then(|| n.checked_mul(8)?.checked_add(u64::from(b - b'0')))?
    })
}
