//! A terminal's settings by the names that the ssh protocol gave them, for those who pass them on
//! to a terminal elsewhere.

use rustix::termios::{InputModes, LocalModes, OutputModes, SpecialCodeIndex as Code, Termios};

const CODES: [(&str, Code); 14] = [
    ("VINTR", Code::VINTR),
    ("VQUIT", Code::VQUIT),
    ("VERASE", Code::VERASE),
    ("VKILL", Code::VKILL),
    ("VEOF", Code::VEOF),
    ("VEOL", Code::VEOL),
    ("VEOL2", Code::VEOL2),
    ("VSTART", Code::VSTART),
    ("VSTOP", Code::VSTOP),
    ("VSUSP", Code::VSUSP),
    ("VREPRINT", Code::VREPRINT),
    ("VWERASE", Code::VWERASE),
    ("VLNEXT", Code::VLNEXT),
    ("VDISCARD", Code::VDISCARD),
];

const INPUT: [(&str, InputModes); 12] = [
    ("IGNPAR", InputModes::IGNPAR),
    ("PARMRK", InputModes::PARMRK),
    ("INPCK", InputModes::INPCK),
    ("ISTRIP", InputModes::ISTRIP),
    ("INLCR", InputModes::INLCR),
    ("IGNCR", InputModes::IGNCR),
    ("ICRNL", InputModes::ICRNL),
    ("IXON", InputModes::IXON),
    ("IXANY", InputModes::IXANY),
    ("IXOFF", InputModes::IXOFF),
    ("IMAXBEL", InputModes::IMAXBEL),
    ("IUTF8", InputModes::IUTF8),
];

const LOCAL: [(&str, LocalModes); 11] = [
    ("ISIG", LocalModes::ISIG),
    ("ICANON", LocalModes::ICANON),
    ("ECHO", LocalModes::ECHO),
    ("ECHOE", LocalModes::ECHOE),
    ("ECHOK", LocalModes::ECHOK),
    ("ECHONL", LocalModes::ECHONL),
    ("NOFLSH", LocalModes::NOFLSH),
    ("TOSTOP", LocalModes::TOSTOP),
    ("IEXTEN", LocalModes::IEXTEN),
    ("ECHOCTL", LocalModes::ECHOCTL),
    ("ECHOKE", LocalModes::ECHOKE),
];

const OUTPUT: [(&str, OutputModes); 5] = [
    ("OPOST", OutputModes::OPOST),
    ("ONLCR", OutputModes::ONLCR),
    ("OCRNL", OutputModes::OCRNL),
    ("ONOCR", OutputModes::ONOCR),
    ("ONLRET", OutputModes::ONLRET),
];

/// A terminal's settings, by name.
pub fn of(termios: &Termios) -> Vec<(&'static str, u8)> {
    let codes = CODES.iter().map(|(name, code)| (*name, termios.special_codes[*code]));
    let input = INPUT.iter().map(|(name, mode)| (*name, u8::from(termios.input_modes.contains(*mode))));
    let local = LOCAL.iter().map(|(name, mode)| (*name, u8::from(termios.local_modes.contains(*mode))));
    let output = OUTPUT.iter().map(|(name, mode)| (*name, u8::from(termios.output_modes.contains(*mode))));
    codes.chain(input).chain(local).chain(output).collect()
}

/// Whether a terminal has a setting of this name here. Other systems have others.
pub fn is_known(name: &str) -> bool {
    CODES.iter().any(|(n, _)| *n == name)
        || INPUT.iter().any(|(n, _)| *n == name)
        || LOCAL.iter().any(|(n, _)| *n == name)
        || OUTPUT.iter().any(|(n, _)| *n == name)
}

/// Sets one of a terminal's settings by name; says whether there is one of that name.
pub(crate) fn set(termios: &mut Termios, name: &str, value: u8) -> bool {
    if let Some((_, code)) = CODES.iter().find(|(n, _)| *n == name) {
        termios.special_codes[*code] = value;
    } else if let Some((_, mode)) = INPUT.iter().find(|(n, _)| *n == name) {
        termios.input_modes.set(*mode, value != 0);
    } else if let Some((_, mode)) = LOCAL.iter().find(|(n, _)| *n == name) {
        termios.local_modes.set(*mode, value != 0);
    } else if let Some((_, mode)) = OUTPUT.iter().find(|(n, _)| *n == name) {
        termios.output_modes.set(*mode, value != 0);
    } else {
        return false;
    }
    true
}
