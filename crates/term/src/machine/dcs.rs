//! Device control strings: setting reports, capability queries, and pictures, which are skipped.

use super::Machine;
use crate::changes::{Graphics, Signal};
use crate::parser::Csi;
use std::fmt::Write as _;

impl Machine {
    pub(super) fn device_string(&mut self, head: &Csi, data: &[u8], overflow: bool) {
        let Ok(inter) = u8::try_from(head.inter) else { return };
        match (head.prefix, inter, head.last) {
            (0, 0, b'q') => self.signal(Signal::Graphics(Graphics::Sixel)),
            (0, 0, b'p') => self.signal(Signal::Graphics(Graphics::Regis)),
            _ if overflow => {}
            (0, b'$', b'q') => self.report_setting(data),
            (0, b'+', b'q') => self.report_capabilities(data),
            (0, b'$', b't') => self.restore_presentation(head.params.get(0), data),
            _ => {}
        }
    }

    pub(super) fn apc(&mut self, data: &[u8]) {
        if data.first() == Some(&b'G') {
            self.signal(Signal::Graphics(Graphics::Kitty));
        }
    }

    /// XTGETTCAP: names in hexadecimal, one answer each.
    fn report_capabilities(&mut self, data: &[u8]) {
        for name in data.split(|&b| b == b';').take(64) {
            let decoded = unhex(name);
            match decoded.as_deref().and_then(|n| self.capability(n)) {
                Some(value) => {
                    let mut out = String::from("1+r");
                    // The name comes back in our own spelling of it.
                    hex(&mut out, decoded.as_deref().unwrap_or(""));
                    if !value.is_empty() {
                        out.push('=');
                        hex(&mut out, &value);
                    }
                    self.reply_dcs(&out);
                }
                None => self.reply_dcs("0+r"),
            }
        }
    }

    fn capability(&self, name: &str) -> Option<String> {
        let text = match name {
            "TN" | "name" => "xterm-256color",
            "Co" | "colors" => "256",
            "RGB" => "8/8/8",
            "Tc" | "Su" | "AX" | "XT" | "bce" | "fullkbd" | "am" | "xenl" | "km" => "",
            "Smulx" => "\x1b[4:%p1%dm",
            "Setulc" => "\x1b[58:2::%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:%p1%{255}%&%d%;m",
            "Ss" => "\x1b[%p1%d q",
            "Se" => "\x1b[2 q",
            "Ms" => "\x1b]52;%p1%s;%p2%s\x07",
            "Sync" => "\x1b[?2026%?%p1%{1}%-%tl%eh%;",
            "BE" => "\x1b[?2004h",
            "BD" => "\x1b[?2004l",
            "PS" => "\x1b[200~",
            "PE" => "\x1b[201~",
            "smcup" => "\x1b[?1049h\x1b[22;0;0t",
            "rmcup" => "\x1b[?1049l\x1b[23;0;0t",
            "indn" => "\x1b[%p1%dS",
            "rin" => "\x1b[%p1%dT",
            "setrgbf" => "\x1b[38:2:%p1%d:%p2%d:%p3%dm",
            "setrgbb" => "\x1b[48:2:%p1%d:%p2%d:%p3%dm",
            "cols" => return Some(self.cols().to_string()),
            "lines" => return Some(self.rows().to_string()),
            "kcuu1" | "ku" => "\x1bOA",
            "kcud1" | "kd" => "\x1bOB",
            "kcuf1" | "kr" => "\x1bOC",
            "kcub1" | "kl" => "\x1bOD",
            "khome" | "kh" => "\x1bOH",
            "kend" | "@7" => "\x1bOF",
            "kbs" | "kb" => "\x7f",
            "kdch1" | "kD" => "\x1b[3~",
            "kich1" | "kI" => "\x1b[2~",
            "kpp" | "kP" => "\x1b[5~",
            "knp" | "kN" => "\x1b[6~",
            "kf1" | "k1" => "\x1bOP",
            "kf2" | "k2" => "\x1bOQ",
            "kf3" | "k3" => "\x1bOR",
            "kf4" | "k4" => "\x1bOS",
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// DECRSPS: what DECRQPSR reported, back again. Only the tab stops, which programs do use.
    fn restore_presentation(&mut self, what: u16, data: &[u8]) {
        if what != 2 {
            return;
        }
        self.tabs.fill(false);
        for stop in String::from_utf8_lossy(data).split('/') {
            if let Ok(n) = stop.parse::<usize>()
                && let Some(t) = n.checked_sub(1).and_then(|x| self.tabs.get_mut(x))
            {
                *t = true;
            }
        }
    }
}

fn unhex(digits: &[u8]) -> Option<String> {
    if digits.is_empty() || !digits.len().is_multiple_of(2) || digits.len() > 256 {
        return None;
    }
    let value = |b: u8| char::from(b).to_digit(16);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|p| Some((value(p[0])? * 16 + value(p[1])?) as u8)).collect();
    String::from_utf8(bytes?).ok()
}

fn hex(out: &mut String, text: &str) {
    for b in text.bytes() {
        // A string takes everything.
        let _ = write!(out, "{b:02X}");
    }
}
