//! Operating system commands: titles, colours, links, marks and messages to the host.

use super::Machine;
use crate::changes::{Graphics, Mark, Progress, Signal};
use crate::palette::{Rgb, parse_colour};

/// Texts handed to the host are cut at this length.
const MAX_TEXT: usize = 8192;

impl Machine {
    pub(super) fn osc(&mut self, data: &[u8], bell: bool) {
        let split = data.iter().position(|&b| b == b';').unwrap_or(data.len());
        let rest = data.get(split + 1..).unwrap_or(&[]);
        let number = match std::str::from_utf8(&data[..split]) {
            Ok("l") => 2,
            Ok("L") => 1,
            Ok(s) => match s.parse::<u16>() {
                Ok(n) => n,
                // Sun's form has no semicolon.
                Err(_) if s.starts_with('l') => return self.set_title(&data[1..]),
                Err(_) if s.starts_with('L') => return self.set_icon(&data[1..]),
                Err(_) => return,
            },
            Err(_) => return,
        };
        match number {
            0 => {
                self.set_icon(rest);
                self.set_title(rest);
            }
            1 => self.set_icon(rest),
            2 => self.set_title(rest),
            4 => self.palette_entries(rest, bell),
            5 => self.special_colours(rest, bell),
            7 => self.set_directory(rest),
            8 => self.hyperlink(rest),
            9 => self.osc_9(rest),
            10..=19 => self.dynamic_colours(usize::from(number - 10), rest, bell),
            22 => {
                let shape = Self::clean(rest, 64);
                self.signal(Signal::Pointer(shape));
            }
            52 => self.clipboard(rest),
            99 => self.kitty_notification(rest, bell),
            104 => self.reset_palette(rest),
            105 => self.palette.special = [None; 5],
            110..=119 => {
                self.palette.dynamic[usize::from(number - 110)] = None;
                self.dirty_all();
            }
            133 => self.shell_mark(rest),
            777 => self.notify_777(rest),
            1337 => self.iterm(rest),
            _ => {}
        }
    }

    fn colour_report(c: Rgb) -> String {
        let wide = |v: u8| u16::from(v) * 0x101;
        format!("rgb:{:04x}/{:04x}/{:04x}", wide(c.0), wide(c.1), wide(c.2))
    }

    fn palette_entries(&mut self, rest: &[u8], bell: bool) {
        let text = String::from_utf8_lossy(rest);
        let mut parts = text.split(';');
        while let (Some(n), Some(spec)) = (parts.next(), parts.next()) {
            let Ok(n) = n.parse::<u16>() else { continue };
            if let Some(k) = n.checked_sub(256) {
                self.special_colour(usize::from(k), spec, bell, "4", 256);
            } else if spec == "?" {
                let c = Self::colour_report(self.palette.entry(n as u8));
                self.reply_osc(&format!("4;{n};{c}"), bell);
            } else if let Some(c) = parse_colour(spec) {
                self.palette.set(n as u8, c);
                self.dirty_all();
            }
        }
    }

    fn special_colours(&mut self, rest: &[u8], bell: bool) {
        let text = String::from_utf8_lossy(rest);
        let mut parts = text.split(';');
        while let (Some(n), Some(spec)) = (parts.next(), parts.next()) {
            if let Ok(n) = n.parse::<usize>() {
                self.special_colour(n, spec, bell, "5", 0);
            }
        }
    }

    fn special_colour(&mut self, n: usize, spec: &str, bell: bool, osc: &str, base: usize) {
        let Some(slot) = self.palette.special.get_mut(n) else { return };
        if spec == "?" {
            let c = slot.unwrap_or(self.palette.dynamic(0));
            let c = Self::colour_report(c);
            self.reply_osc(&format!("{osc};{};{c}", n + base), bell);
        } else if let Some(c) = parse_colour(spec) {
            *slot = Some(c);
        }
    }

    /// OSC 10 and on: further colours go to the numbers that follow.
    fn dynamic_colours(&mut self, first: usize, rest: &[u8], bell: bool) {
        let text = String::from_utf8_lossy(rest);
        for (i, spec) in text.split(';').enumerate() {
            let n = first + i;
            if n >= crate::palette::DYNAMIC {
                break;
            }
            if spec == "?" {
                let c = Self::colour_report(self.palette.dynamic(n));
                self.reply_osc(&format!("{};{c}", n + 10), bell);
            } else if let Some(c) = parse_colour(spec) {
                self.palette.dynamic[n] = Some(c);
                self.dirty_all();
            }
        }
    }

    fn reset_palette(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            self.palette.reset_all();
        }
        for n in String::from_utf8_lossy(rest).split(';') {
            match n.parse::<u16>() {
                Ok(n @ 0..=255) => self.palette.reset(n as u8),
                Ok(n) => {
                    if let Some(s) = self.palette.special.get_mut(usize::from(n) - 256) {
                        *s = None;
                    }
                }
                Err(_) => {}
            }
        }
        self.dirty_all();
    }

    fn hyperlink(&mut self, rest: &[u8]) {
        let Ok(text) = std::str::from_utf8(rest) else { return };
        let Some((params, uri)) = text.split_once(';') else { return };
        let id = params.split(':').find_map(|p| p.strip_prefix("id=")).unwrap_or("");
        self.pen.link = self.links.intern(id, uri);
        self.touch_pen();
    }

    fn set_directory(&mut self, rest: &[u8]) {
        self.directory = Self::clean(rest, MAX_TEXT);
        let d = self.directory.clone();
        self.signal(Signal::Directory(d));
    }

    /// OSC 9: ConEmu's commands where it begins with a number, else a notification.
    fn osc_9(&mut self, rest: &[u8]) {
        let mut parts = rest.split(|&b| b == b';');
        match parts.next() {
            Some(b"4") => {
                let number = |p: Option<&[u8]>| {
                    p.and_then(|b| std::str::from_utf8(b).ok()).and_then(|s| s.parse::<u16>().ok())
                };
                let state = number(parts.next());
                let value = number(parts.next()).unwrap_or(0).min(100) as u8;
                let progress = match state {
                    Some(0) => Progress::None,
                    Some(1) => Progress::Running(value),
                    Some(2) => Progress::Error(value),
                    Some(3) => Progress::Indeterminate,
                    Some(4) => Progress::Paused(value),
                    _ => return,
                };
                self.signal(Signal::Progress(progress));
            }
            Some(b"9") => {
                let path = rest.get(2..).unwrap_or(&[]);
                let path = path.strip_prefix(b"\"").and_then(|p| p.strip_suffix(b"\"")).unwrap_or(path);
                self.set_directory(path);
            }
            Some(b"1" | b"2" | b"3" | b"5" | b"6" | b"7" | b"8" | b"10" | b"11" | b"12")
                if rest.contains(&b';') => {}
            _ => {
                let body = Self::clean(rest, MAX_TEXT);
                self.signal(Signal::Notification { title: String::new(), body });
            }
        }
    }

    fn notify_777(&mut self, rest: &[u8]) {
        let mut parts = rest.splitn(3, |&b| b == b';');
        if parts.next() == Some(b"notify") {
            let title = Self::clean(parts.next().unwrap_or(&[]), MAX_TEXT);
            let body = Self::clean(parts.next().unwrap_or(&[]), MAX_TEXT);
            self.signal(Signal::Notification { title, body });
        }
    }

    /// OSC 99. A query for support is answered; of the id only harmless characters come back.
    fn kitty_notification(&mut self, rest: &[u8], bell: bool) {
        let split = rest.iter().position(|&b| b == b';').unwrap_or(rest.len());
        let meta = Self::clean(&rest[..split], 1024);
        let payload = Self::clean(rest.get(split + 1..).unwrap_or(&[]), MAX_TEXT);
        let field = |key: &str| {
            meta.split(':')
                .find_map(|p| p.split_once('=').filter(|(k, _)| *k == key).map(|(_, v)| v.to_owned()))
        };
        match field("p").as_deref() {
            Some("?") => {
                let id = field("i").unwrap_or_default();
                let id: String = id
                    .chars()
                    .filter(|c| c.is_ascii_alphanumeric() || "-_+.".contains(*c))
                    .take(64)
                    .collect();
                self.reply_osc(&format!("99;i={id}:p=?;p=title,body"), bell);
            }
            None | Some("title") => self.signal(Signal::Notification { title: payload, body: String::new() }),
            Some("body") => self.signal(Signal::Notification { title: String::new(), body: payload }),
            _ => {}
        }
    }

    fn clipboard(&mut self, rest: &[u8]) {
        let mut parts = rest.splitn(2, |&b| b == b';');
        let selection = Self::clean(parts.next().unwrap_or(&[]), 32);
        match parts.next() {
            Some(b"?") => self.signal(Signal::ClipboardRead { selection }),
            Some(data) => {
                let data: String =
                    data.iter().map(|&b| char::from(b)).filter(char::is_ascii_graphic).collect();
                self.signal(Signal::ClipboardWrite { selection, data });
            }
            None => {}
        }
    }

    fn shell_mark(&mut self, rest: &[u8]) {
        let mut parts = rest.split(|&b| b == b';');
        let (mark, bit) = match parts.next() {
            Some(b"A" | b"N" | b"P") => (Mark::Prompt, 1),
            Some(b"B" | b"I") => (Mark::Input, 2),
            Some(b"C") => (Mark::Output, 4),
            Some(b"D") => {
                let status =
                    parts.next().and_then(|b| std::str::from_utf8(b).ok()).and_then(|s| s.parse().ok());
                (Mark::Done(status), 8)
            }
            _ => return,
        };
        let y = self.pos.y;
        self.grid.meta_mut(y).marks |= bit;
        let row = self.absolute_row(y);
        self.signal(Signal::Mark { mark, row, col: self.pos.x as u16, offset: self.now - 1 });
    }

    /// OSC 1337: of iTerm2's commands those that tell something; files are refused.
    fn iterm(&mut self, rest: &[u8]) {
        let (key, value) = match rest.iter().position(|&b| b == b'=') {
            Some(i) => (&rest[..i], &rest[i + 1..]),
            None => (rest, &[][..]),
        };
        match key {
            b"SetMark" => {
                let row = self.absolute_row(self.pos.y);
                self.signal(Signal::UserMark { row });
            }
            b"CurrentDir" => self.set_directory(value),
            b"SetUserVar" => {
                let text = Self::clean(value, MAX_TEXT);
                if let Some((name, value)) = text.split_once('=') {
                    self.signal(Signal::UserVar { name: name.to_owned(), value: value.to_owned() });
                }
            }
            b"File" | b"MultipartFile" => self.signal(Signal::Graphics(Graphics::Iterm)),
            _ => {}
        }
    }
}
