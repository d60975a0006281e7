//! Keys under modes: what each is sent as.

use tapdeck_term::keys::{self, Button, Key, KeyEvent, KeyPress, Mods, MouseEvent, MouseKind};
use tapdeck_term::{Modes, Settings, Size, Term};

fn modes(setup: &str) -> Modes {
    let mut t = Term::new(Size::new(80, 24), Settings::default());
    t.feed(setup.as_bytes());
    t.modes()
}

fn check(setup: &str, cases: &[(&str, &str)]) {
    let modes = modes(setup);
    for (name, want) in cases {
        let press: KeyPress = name.parse().unwrap_or_else(|e| panic!("{e}"));
        let got = String::from_utf8_lossy(&keys::encode(press, &modes)).into_owned();
        assert_eq!(got, *want, "{name} after {setup:?}");
    }
}

#[test]
fn plain_keys() {
    check(
        "",
        &[
            ("a", "a"),
            ("A", "A"),
            ("é", "é"),
            ("-", "-"),
            ("C-c", "\x03"),
            ("Ctrl+C", "\x03"),
            ("ctrl+d", "\x04"),
            ("^z", "\x1a"),
            ("M-x", "\x1bx"),
            ("Alt+X", "\x1bX"),
            ("C-M-a", "\x1b\x01"),
            ("C-Space", "\0"),
            ("C-[", "\x1b"),
            ("C-_", "\x1f"),
            ("C--", "\x1f"),
            ("Enter", "\r"),
            ("M-Enter", "\x1b\r"),
            ("Tab", "\t"),
            ("BTab", "\x1b[Z"),
            ("S-Tab", "\x1b[Z"),
            ("Escape", "\x1b"),
            ("BSpace", "\x7f"),
            ("C-BSpace", "\x08"),
            ("Up", "\x1b[A"),
            ("Home", "\x1b[H"),
            ("S-Up", "\x1b[1;2A"),
            ("C-Right", "\x1b[1;5C"),
            ("PPage", "\x1b[5~"),
            ("PageDown", "\x1b[6~"),
            ("DC", "\x1b[3~"),
            ("C-Delete", "\x1b[3;5~"),
            ("F1", "\x1bOP"),
            ("S-F1", "\x1b[1;2P"),
            ("F5", "\x1b[15~"),
            ("S-F5", "\x1b[15;2~"),
            ("F6", "\x1b[17~"),
            ("F10", "\x1b[21~"),
            ("F11", "\x1b[23~"),
            ("F12", "\x1b[24~"),
            ("F13", "\x1b[25~"),
            ("F15", "\x1b[28~"),
            ("F17", "\x1b[31~"),
            ("F20", "\x1b[34~"),
            ("KP5", "5"),
            ("KPEnter", "\r"),
        ],
    );
}

#[test]
fn application_modes() {
    check("\x1b[?1h", &[("Up", "\x1bOA"), ("End", "\x1bOF"), ("S-Up", "\x1b[1;2A")]);
    check("\x1b=", &[("KP5", "\x1bOu"), ("KPEnter", "\x1bOM"), ("KP+", "\x1bOk")]);
    check("\x1b[20h", &[("Enter", "\r\n")]);
    check("\x1b[?67h", &[("BSpace", "\x08"), ("C-BSpace", "\x7f")]);
    check("\x1b[?2l", &[("Up", "\x1bA"), ("F1", "\x1bP")]);
}

#[test]
fn modify_other_keys() {
    check(
        "\x1b[>4;1m",
        &[("C-c", "\x03"), ("C-Enter", "\x1b[27;5;13~"), ("C-S-a", "\x1b[27;6;65~"), ("M-x", "\x1bx")],
    );
    check("\x1b[>4;2m", &[("C-c", "\x1b[27;5;99~"), ("M-x", "\x1b[27;3;120~"), ("a", "a"), ("S-a", "A")]);
}

#[test]
fn kitty_keyboard() {
    check(
        "\x1b[>1u",
        &[
            ("a", "a"),
            ("S-a", "A"),
            ("C-c", "\x1b[99;5u"),
            ("M-x", "\x1b[120;3u"),
            ("Escape", "\x1b[27u"),
            ("Enter", "\r"),
            ("S-Enter", "\x1b[13;2u"),
            ("C-Enter", "\x1b[13;5u"),
            ("Tab", "\t"),
            ("S-Tab", "\x1b[9;2u"),
            ("BSpace", "\x7f"),
            ("Up", "\x1b[A"),
            ("C-Up", "\x1b[1;5A"),
            ("F1", "\x1b[P"),
            ("F3", "\x1b[13~"),
            ("F5", "\x1b[15~"),
            ("F13", "\x1b[57376u"),
        ],
    );
    check("\x1b[>9u", &[("a", "\x1b[97u"), ("S-a", "\x1b[97;2u"), ("Enter", "\x1b[13u")]);
    check("\x1b[>13u", &[("S-a", "\x1b[97:65;2u")]);
    check("\x1b[>25u", &[("a", "\x1b[97;;97u"), ("S-a", "\x1b[97;2;65u")]);
    let m = modes("\x1b[>3u");
    let release = KeyPress { key: Key::Up, mods: Mods::NONE, event: KeyEvent::Release };
    assert_eq!(keys::encode(release, &m), b"\x1b[1;1:3A");
    assert!(keys::encode(release, &modes("")).is_empty());
}

#[test]
fn names_are_written_back() {
    for name in ["C-c", "M-x", "Enter", "S-F5", "C-M-Up", "PPage", "Space", "KP5"] {
        let press: KeyPress = name.parse().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(press.to_string(), name);
    }
    assert!("Nonsense".parse::<KeyPress>().is_err());
    assert!("".parse::<KeyPress>().is_err());
    assert!("F99".parse::<KeyPress>().is_err());
}

#[test]
fn pastes_cannot_break_out() {
    let evil = "a\x1b[201~rm -rf\n\x03b\r\nc\td\u{9b}";
    assert_eq!(keys::paste(evil, &modes("")), b"a[201~rm -rf\rb\rc\td");
    assert_eq!(keys::paste(evil, &modes("\x1b[?2004h")), b"\x1b[200~a[201~rm -rf\rb\rc\td\x1b[201~");
}

#[test]
fn mouse_and_focus() {
    let event = |kind| MouseEvent { kind, col: 9, row: 4, x: 95, y: 87, mods: Mods::CTRL };
    let press = event(MouseKind::Press(Button::Left));
    assert!(keys::mouse(press, &modes("")).is_empty());
    assert_eq!(keys::mouse(press, &modes("\x1b[?1000h")), b"\x1b[M\x30\x2a\x25");
    assert_eq!(keys::mouse(press, &modes("\x1b[?1000;1006h")), b"\x1b[<16;10;5M");
    assert_eq!(keys::mouse(press, &modes("\x1b[?1000;1016h")), b"\x1b[<16;95;87M");
    assert_eq!(keys::mouse(press, &modes("\x1b[?1000;1015h")), b"\x1b[48;10;5M");
    let release = event(MouseKind::Release(Button::Left));
    assert_eq!(keys::mouse(release, &modes("\x1b[?1000;1006h")), b"\x1b[<16;10;5m");
    let moved = event(MouseKind::Move(None));
    assert!(keys::mouse(moved, &modes("\x1b[?1002;1006h")).is_empty());
    assert_eq!(keys::mouse(moved, &modes("\x1b[?1003;1006h")), b"\x1b[<51;10;5M");
    let wheel = event(MouseKind::Press(Button::WheelUp));
    assert_eq!(keys::mouse(wheel, &modes("\x1b[?1049h")), b"\x1b[A\x1b[A\x1b[A");
    assert_eq!(keys::focus(true, &modes("\x1b[?1004h")), b"\x1b[I");
    assert!(keys::focus(true, &modes("")).is_empty());
}

/// Whatever protocol is in force, a key that was sent is the key that is read.
#[test]
fn keys_are_read_back_in_every_protocol() {
    let setups = ["", "\x1b[?1h\x1b=", "\x1b[>4;1m", "\x1b[>4;2m"].map(str::to_owned);
    let kitty = (1..32).map(|flags| format!("\x1b[>{flags}u"));
    let names = [
        "a", "A", "é", "?", "C-\\", "C-c", "M-x", "C-M-a", "C-Space", "Enter", "Tab", "S-Tab", "Escape",
        "BSpace", "Up", "S-Up", "C-Right", "PageUp", "DC", "C-Delete", "Home", "F1", "S-F4", "F5", "F12",
        "F14", "M-Up",
    ];
    for setup in setups.into_iter().chain(kitty) {
        let modes = modes(&setup);
        for name in names {
            for event in [KeyEvent::Press, KeyEvent::Repeat, KeyEvent::Release] {
                let press = KeyPress { event, ..name.parse().expect("a key") };
                let bytes = keys::encode(press, &modes);
                let Some((len, Some(read))) = keys::decode(&bytes) else {
                    assert!(bytes.is_empty(), "{name} after {setup:?}: {bytes:?}");
                    continue;
                };
                let same = (len, read.key, read.mods) == (bytes.len(), press.key, press.mods);
                assert!(same, "{name} after {setup:?}: {read:?} in {bytes:?}");
                if event == KeyEvent::Release {
                    assert_eq!(read.event, event, "{name} after {setup:?}");
                }
                // What a terminal sends in pieces is not taken for another key.
                for cut in 3..len {
                    assert_eq!(keys::decode(&bytes[..cut]), None, "{name} after {setup:?}, cut at {cut}");
                }
            }
        }
    }
    let none = |bytes: &[u8], len| assert_eq!(keys::decode(bytes), Some((len, None)), "{bytes:?}");
    none(b"\x1b[<35;7;9Mx", 10);
    none(b"\x1b[M !!x", 6);
    none(b"\x1b[200~x", 6);
    none(b"\x1b[Ix", 3);
    none(b"\x1b[3;4Rx", 6);
    none(b"\x1b]11;rgb:0/0/0\x1b\\x", 16);
    assert_eq!(keys::decode(b"\x1b]11;rgb"), None);
}
