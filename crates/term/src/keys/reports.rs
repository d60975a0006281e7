//! Telling a terminal's reports from keys: both come by the same way.

/// Whether bytes from a terminal are whole reports and nothing else: answers to a program's
/// questions, and changes of focus. A cursor report in the first row looks like a key (F3), and
/// counts as one.
pub fn is_report(mut bytes: &[u8]) -> bool {
    if bytes.first() != Some(&0x1b) {
        return false;
    }
    while !bytes.is_empty() {
        match report(bytes) {
            Some(length) => bytes = &bytes[length..],
            None => return false,
        }
    }
    true
}

/// The length of the report that the bytes begin with.
fn report(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|b| (0x40..=0x7e).contains(b))?;
            let (params, last) = (&rest[..end], rest[end]);
            let private = matches!(params.first(), Some(b'?' | b'>' | b'='));
            let is_report = match last {
                b'c' | b'u' | b'n' => private || (last == b'n' && !params.is_empty()),
                b'y' => params.ends_with(b"$"),
                b't' => params.contains(&b';'),
                b'R' => private || (params.contains(&b';') && !params.starts_with(b"1;")),
                b'I' | b'O' => params.is_empty(),
                _ => false,
            };
            is_report.then_some(2 + end + 1)
        }
        [0x1b, b']' | b'P' | b'_', ..] => {
            let end = bytes[2..].iter().position(|b| matches!(b, 0x07 | 0x1b))? + 2;
            match bytes[end..] {
                [0x07, ..] => Some(end + 1),
                [0x1b, b'\\', ..] => Some(end + 2),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_report;

    #[test]
    fn reports_are_told_from_keys() {
        for report in [
            "\x1b[?62;4c",
            "\x1b[>41;330;0c",
            "\x1b[0n",
            "\x1b[?997;1n",
            "\x1b[12;40R",
            "\x1b[?0u",
            "\x1b[?2026;2$y",
            "\x1b[4;600;800t",
            "\x1bP>|tmux 3.3a\x1b\\",
            "\x1b]11;rgb:0000/0000/0000\x07",
            "\x1b]10;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c",
            "\x1b_Gi=31;OK\x1b\\",
            "\x1b[I",
            "\x1b[O",
        ] {
            assert!(is_report(report.as_bytes()), "{report:?}");
        }
        for key in [
            "",
            "a",
            "\r",
            "\x1b",
            "\x1b[A",
            "\x1b[1;5C",
            "\x1b[1;2R",
            "\x1bOR",
            "\x1b[13u",
            "\x1b[97;5u",
            "\x1b[200~x\x1b[201~",
            "\x1b[<0;3;4M",
            "\x1b[?62;4cx",
            "\x1bP>|half",
            "\x1b[12;",
            "\x1b]",
            "\x1b[3~",
        ] {
            assert!(!is_report(key.as_bytes()), "{key:?}");
        }
    }
}
