//! The keys of `play`, out of what a terminal sends.

const SKIP: u64 = 5_000_000_000;
const LONG_SKIP: u64 = 60_000_000_000;

/// The command of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Suspend,
    Pause,
    StepForth,
    StepBack,
    Skip(i64),
    Tenth(u8),
    NextMoment,
    LastMoment,
}

/// Decodes typed keys. Other sequences are skipped whole.
pub(super) fn keys_of(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'q' | b'Q' | 3 | 4 => keys.push(Key::Quit),
            26 => keys.push(Key::Suspend),
            b' ' => keys.push(Key::Pause),
            b'.' => keys.push(Key::StepForth),
            b',' => keys.push(Key::StepBack),
            b']' => keys.push(Key::NextMoment),
            b'[' => keys.push(Key::LastMoment),
            b'0'..=b'9' => keys.push(Key::Tenth(first - b'0')),
            0x1b => {
                let introduced = matches!(rest.first(), Some(b'[' | b'O'));
                let end = rest.iter().skip(1).position(|b| (0x40..=0x7e).contains(b)).map(|i| i + 1);
                let Some(end) = end.filter(|_| introduced) else { continue };
                keys.extend(match rest[end] {
                    b'C' => Some(Key::Skip(SKIP.cast_signed())),
                    b'D' => Some(Key::Skip(-SKIP.cast_signed())),
                    b'A' => Some(Key::Skip(LONG_SKIP.cast_signed())),
                    b'B' => Some(Key::Skip(-LONG_SKIP.cast_signed())),
                    _ => None,
                });
                rest = &rest[end + 1..];
            }
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sequences_that_are_none() {
        assert_eq!(keys_of(b" .,5q"), [Key::Pause, Key::StepForth, Key::StepBack, Key::Tenth(5), Key::Quit]);
        assert_eq!(keys_of(b"\x1b[C\x1bOD"), [Key::Skip(5_000_000_000), Key::Skip(-5_000_000_000)]);
        assert_eq!(keys_of(b"\x1b[?62;4c\x1b[5n"), [], "a terminal's answers are no keys");
        assert_eq!(keys_of(b"\x1b"), []);
    }
}
