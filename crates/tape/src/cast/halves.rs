//! Escapes of single surrogates in JSON: half a character, which no text can hold. Some recorders
//! write them for bytes that are not UTF-8, and one of them must not cost the rest of the file.

/// The line with each half replaced by the replacement character; `None` when there is none.
pub(super) fn replace(line: &[u8]) -> Option<Vec<u8>> {
    let mut out = line.to_vec();
    let mut changed = false;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &line[at..]) {
        at += found;
        let Some(unit) = escaped(line, at) else {
            at += 2;
            if at >= line.len() {
                break;
            }
            continue;
        };
        let pair = matches!(unit, 0xd800..=0xdbff) && matches!(escaped(line, at + 6), Some(0xdc00..=0xdfff));
        if pair {
            at += 12;
            continue;
        }
        if matches!(unit, 0xd800..=0xdfff) {
            out[at + 2..at + 6].copy_from_slice(b"fffd");
            changed = true;
        }
        at += 6;
    }
    changed.then_some(out)
}

/// The code unit of an escape `\uXXXX` at this place.
fn escaped(line: &[u8], at: usize) -> Option<u16> {
    let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn halves_are_replaced_and_pairs_are_not() {
        for (line, want) in [
            (r#"[1,"o","plain"]"#, None),
            (r#"[1,"o","a\ud83d\ude00b"]"#, None),
            (r#"[1,"o","a\udcffb"]"#, Some(r#"[1,"o","a\ufffdb"]"#)),
            (r#"[1,"o","\ud83dx\ude00"]"#, Some(r#"[1,"o","\ufffdx\ufffd"]"#)),
            (r#"[1,"o","\\ud83d"]"#, None),
            (r#"[1,"o","\\\ud83d"]"#, Some(r#"[1,"o","\\\ufffd"]"#)),
            (r#"[1,"o","\ud8"#, None),
            (r#"[1,"o","\"#, None),
        ] {
            assert_eq!(
                replace(line.as_bytes()).map(|l| String::from_utf8(l).unwrap()).as_deref(),
                want,
                "{line}"
            );
        }
    }
}
