//! Code page 437, the character set of DOS art. The lower half is ASCII; its control codes have
//! pictures too, which a terminal never shows except those that have no function in a terminal
//! stream.

use std::sync::LazyLock;

/// Characters 0x80 to 0xFF.
const HIGH: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
/// Pictures of the control codes 0x01 to 0x1F.
const LOW: &str = "☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼";

/// Control codes that act in a terminal stream and have no picture there: BEL, BS, TAB, LF, FF, CR,
/// SO, SI and ESC.
fn acts(byte: u8) -> bool {
    matches!(byte, 0 | 7..=10 | 12..=15 | 0x1b)
}

/// The character of each byte.
static TABLE: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut table = std::array::from_fn(|i| char::from(i as u8));
    for (i, c) in HIGH.chars().enumerate() {
        table[0x80 + i] = c;
    }
    for (i, c) in LOW.chars().enumerate().filter(|(i, _)| !acts(*i as u8 + 1)) {
        table[i + 1] = c;
    }
    table
});

/// Appends bytes of code page 437 as UTF-8.
pub(crate) fn decode(bytes: &[u8], out: &mut Vec<u8>) {
    let mut buf = [0; 4];
    for &byte in bytes {
        out.extend_from_slice(TABLE[usize::from(byte)].encode_utf8(&mut buf).as_bytes());
    }
}

/// The byte of a character, if the code page has it.
pub(crate) fn encode(c: char) -> Option<u8> {
    if c.is_ascii() {
        return Some(c as u8);
    }
    if let Some(i) = HIGH.chars().position(|h| h == c) {
        return Some(0x80 + i as u8);
    }
    // Pictures of codes that act would act.
    LOW.chars().position(|l| l == c).map(|i| i as u8 + 1).filter(|&b| !acts(b) && b != 0x1a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_complete_and_inverts() {
        assert_eq!((HIGH.chars().count(), LOW.chars().count()), (128, 31));
        for byte in 0..=255_u8 {
            let mut out = Vec::new();
            decode(&[byte], &mut out);
            let text = String::from_utf8(out).unwrap();
            let c = text.chars().next().unwrap();
            if byte != 0x1a {
                assert_eq!(encode(c), Some(byte), "{byte:#x} {c}");
            }
        }
        assert_eq!(encode('😀'), None);
    }
}
