//! The parser against the `vte` crate: the same tokens from the same bytes, in the grammar that
//! both know.

use super::{Csi, Parser, Sink, StringKind};
use proptest::prelude::*;

/// Tokens as short texts.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn print(&mut self, c: char) {
        match self.0.last_mut() {
            Some(last) if last.starts_with("text ") => last.push(c),
            _ => self.0.push(format!("text {c}")),
        }
    }
}

impl Sink for Log {
    fn ascii(&mut self, run: &[u8], _: u64) {
        run.iter().for_each(|b| self.print(char::from(*b)));
    }
    fn character(&mut self, c: char, _: u64) {
        self.print(c);
    }
    fn execute(&mut self, byte: u8, _: u64) {
        self.0.push(format!("control {byte}"));
    }
    fn esc(&mut self, inter: u16, last: u8, _: u64) -> bool {
        let inter: Vec<u8> = inter.to_be_bytes().into_iter().filter(|b| *b != 0).collect();
        self.0.push(format!("esc {inter:?} {last}"));
        false
    }
    fn csi(&mut self, csi: &Csi, _: u64) -> bool {
        let mut groups: Vec<Vec<u16>> = Vec::new();
        for i in 0..csi.params.len() {
            match groups.last_mut() {
                Some(g) if csi.params.is_sub(i) => g.push(csi.params.get(i)),
                _ => groups.push(vec![csi.params.get(i)]),
            }
        }
        // vte has one parameter of 0 where there is none.
        if groups.is_empty() {
            groups.push(vec![0]);
        }
        let inter: Vec<u8> =
            [csi.prefix].into_iter().chain(csi.inter.to_be_bytes()).filter(|b| *b != 0).collect();
        self.0.push(format!("csi {groups:?} {inter:?} {}", char::from(csi.last)));
        false
    }
    fn string(&mut self, kind: StringKind, _: &Csi, data: &[u8], _: bool, _: bool, _: u64) {
        if kind == StringKind::Osc {
            self.0.push(format!("osc {:?}", data.split(|b| *b == b';').collect::<Vec<_>>()));
        }
    }
    fn vt52(&mut self, _: u8, _: [u8; 2], _: u64) -> bool {
        false
    }
}

#[derive(Default)]
struct Oracle(Log);

impl vte::Perform for Oracle {
    fn print(&mut self, c: char) {
        self.0.print(c);
    }
    fn execute(&mut self, byte: u8) {
        self.0.0.push(format!("control {byte}"));
    }
    fn csi_dispatch(&mut self, params: &vte::Params, inter: &[u8], ignore: bool, c: char) {
        if !ignore {
            let groups: Vec<Vec<u16>> = params.iter().map(<[u16]>::to_vec).collect();
            self.0.0.push(format!("csi {groups:?} {inter:?} {c}"));
        }
    }
    fn esc_dispatch(&mut self, inter: &[u8], _: bool, byte: u8) {
        // What ends a string is no sequence to us.
        if byte != b'\\' {
            self.0.0.push(format!("esc {inter:?} {byte}"));
        }
    }
    fn osc_dispatch(&mut self, params: &[&[u8]], _: bool) {
        self.0.0.push(format!("osc {params:?}"));
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z é漢😀]{1,20}",
        1 => "[\r\n\t\x07\x08]",
        3 => "\x1b\\[[<=>?]?[0-9]{0,6}(;[0-9]{0,4}){0,6}[@-~]",
        1 => "\x1b\\[[0-9]{1,3}(:[0-9]{0,3}){0,5}(;[0-9]{0,3}){0,3}m",
        1 => "\x1b\\[[0-9]{0,3} ?[!\"$' *]?[@-Z`-~]",
        1 => "\x1b[ #%()*+][0-9A-Z]",
        1 => "\x1b[7-9=>A-OQ-WYZa-z]",
        1 => "\x1b\\][0-9]{1,3};[a-z;é]{0,20}(\x07|\x1b\\\\)",
        1 => "\x1b\\[[0-9;]{0,5}[\r\n\t][0-9;]{0,5}[@-~]",
    ]
}

proptest! {
    #[test]
    fn tokens_are_those_of_vte(text in prop::collection::vec(piece(), 0..30), cut in any::<prop::sample::Index>()) {
        let bytes = text.concat().into_bytes();
        let cut = cut.index(bytes.len() + 1);
        let mut ours = Log::default();
        let mut parser = Parser::new(1 << 16);
        parser.advance(&bytes[..cut], 0, &mut ours);
        parser.advance(&bytes[cut..], cut as u64, &mut ours);
        let mut oracle = Oracle::default();
        vte::Parser::new().advance(&mut oracle, &bytes);
        prop_assert_eq!(ours.0, oracle.0.0);
    }
}
