//! Where the parser stands inside a token, written as the bytes that lead there.

use super::{MAX_PARAMS, Parser, State, StringKind};

impl Parser {
    /// The string that is being read, unless it is too long already.
    pub(crate) fn open_string(&self) -> Option<(StringKind, &[u8])> {
        let open = matches!(self.state, State::String | State::StringEscape) && !self.overflow;
        open.then_some((self.kind, &*self.string))
    }

    /// Bytes that a terminator which has begun takes.
    pub(crate) fn string_escape(&self) -> u64 {
        u64::from(self.state == State::StringEscape)
    }

    /// Bytes that bring a fresh parser to where this one stands inside a token; empty between
    /// tokens.
    pub(crate) fn pending(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let params = |out: &mut Vec<u8>| {
            for i in 0..self.csi.params.len() {
                if self.csi.params.given >> i & 1 == 1 {
                    out.extend_from_slice(self.csi.params.values[i].to_string().as_bytes());
                }
                let sub = i + 1 < MAX_PARAMS && self.csi.params.sub >> (i + 1) & 1 == 1;
                out.push(if sub { b':' } else { b';' });
            }
            if self.csi.params.len() < MAX_PARAMS && self.csi.params.given >> self.csi.params.len & 1 == 1 {
                out.extend_from_slice(self.value.to_string().as_bytes());
            }
        };
        let inter =
            |out: &mut Vec<u8>| out.extend(self.csi.inter.to_be_bytes().into_iter().filter(|&b| b != 0));
        match self.state {
            State::Ground => out.extend_from_slice(&self.utf8[..usize::from(self.utf8_len)]),
            State::Escape => out.push(0x1b),
            State::EscapeInter => {
                out.push(0x1b);
                inter(&mut out);
            }
            State::CsiEntry
            | State::CsiParam
            | State::CsiInter
            | State::DcsEntry
            | State::DcsParam
            | State::DcsInter => {
                let csi = matches!(self.state, State::CsiEntry | State::CsiParam | State::CsiInter);
                out.extend_from_slice(if csi { b"\x1b[" } else { b"\x1bP" });
                out.extend((self.csi.prefix != 0).then_some(self.csi.prefix));
                params(&mut out);
                inter(&mut out);
            }
            State::CsiIgnore => out.extend_from_slice(b"\x1b[0?"),
            State::DcsIgnore => out.extend_from_slice(b"\x1bP0?"),
            State::String | State::StringEscape => {
                let opening: &[u8] = match self.kind {
                    StringKind::Osc => b"\x1b]",
                    StringKind::Apc => b"\x1b_",
                    StringKind::Pm => b"\x1b^",
                    StringKind::Sos => b"\x1bX",
                    StringKind::Dcs => b"\x1bP",
                };
                out.extend_from_slice(opening);
                if self.kind == StringKind::Dcs {
                    out.extend((self.head.prefix != 0).then_some(self.head.prefix));
                    for i in 0..self.head.params.len() {
                        if i > 0 {
                            out.push(b';');
                        }
                        out.extend_from_slice(self.head.params.get(i).to_string().as_bytes());
                    }
                    out.extend(self.head.inter.to_be_bytes().into_iter().filter(|&b| b != 0));
                    out.extend((self.head.last != 0).then_some(self.head.last));
                }
                out.extend_from_slice(&self.string);
                if self.state == State::StringEscape {
                    out.push(0x1b);
                }
            }
            State::Vt52Row => out.extend_from_slice(b"\x1bY"),
            State::Vt52Col => out.extend([0x1b, b'Y', self.vt52_row]),
        }
        out
    }
}
