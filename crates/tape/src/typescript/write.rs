//! Writing a typescript with its timing file, in the form that `scriptreplay` reads.

use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_term::Size;

use crate::event::{Event, EventWriter, Field, Header, Kind, Loss, Losses, Parts};
use crate::push_fmt::PushFmt;

/// The form of the timing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Delay and length a line; output only.
    Classic,
    /// With letters; carries input, sizes and the exit code too.
    Advanced,
}

/// Writes a typescript: data into [`Parts::main`], timing into [`Parts::timing`].
#[derive(Debug)]
pub struct TypescriptWriter {
    form: Timing,
    last_us: u64,
    /// When something happened last.
    end: Time,
    /// A delay of events that were dropped, to be added to the next one.
    exit: Option<i32>,
    losses: Losses,
}

impl TypescriptWriter {
    /// With timing in the given form.
    pub fn new(form: Timing) -> Self {
        Self { form, last_us: 0, end: Time::ZERO, exit: None, losses: Losses::default() }
    }

    fn delay(&mut self, time: Time) -> String {
        let us = time.as_micros().max(self.last_us);
        let delay = us - self.last_us;
        self.last_us = us;
        format!("{}.{:06}", delay / 1_000_000, delay % 1_000_000)
    }
}

impl EventWriter for TypescriptWriter {
    fn begin(&mut self, header: &Header, out: &mut Parts) {
        // Control characters in a title or command would end the line early and shift all of the
        // data.
        let clean = |text: &str| text.replace(|c: char| c.is_control(), " ");
        let when = format_time(header.started.unwrap_or_default());
        out.main.push_fmt(format_args!("Script started on {when}"));
        if let Some(command) = &header.command {
            out.main.push_fmt(format_args!(" [COMMAND=\"{}\"]", clean(command)));
        }
        out.main.push(b'\n');
        if self.form == Timing::Classic {
            return;
        }
        let mut field = |name: &str, value: &str| {
            out.timing.push_fmt(format_args!("H 0.000000 {name} {}\n", clean(value)));
        };
        field("START_TIME", &when);
        if let Some(term) = &header.term {
            field("TERM", term);
        }
        if let Some(Size { cols, rows }) = header.size {
            field("COLUMNS", &cols.to_string());
            field("LINES", &rows.to_string());
        }
        if let Some(shell) = header.env.get("SHELL") {
            field("SHELL", shell);
        }
        if let Some(command) = &header.command {
            field("COMMAND", command);
        }
        let carried = [Field::Command, Field::Term, Field::Pipes, Field::Env];
        // Of the environment it names the shell alone.
        let shell_only = header.env.keys().all(|name| name == "SHELL");
        self.losses.drop_fields(header, if shell_only { &carried } else { &carried[..3] });
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        let classic = self.form == Timing::Classic;
        self.end = self.end.max(event.time);
        match &event.kind {
            Kind::Output(bytes) | Kind::Input(bytes) if bytes.is_empty() => {}
            Kind::Output(bytes) => {
                let delay = self.delay(event.time);
                let letter = if classic { "" } else { "O " };
                out.timing.push_fmt(format_args!("{letter}{delay} {}\n", bytes.len()));
                out.main.extend_from_slice(bytes);
            }
            Kind::Input(bytes) if !classic => {
                let delay = self.delay(event.time);
                out.timing.push_fmt(format_args!("I {delay} {}\n", bytes.len()));
                out.main.extend_from_slice(bytes);
            }
            Kind::Resize(Size { cols, rows }) if !classic => {
                let delay = self.delay(event.time);
                out.timing.push_fmt(format_args!("S {delay} SIGWINCH ROWS={rows} COLS={cols}\n"));
            }
            Kind::Exit(Exit::Code(code)) => self.exit = Some(*code),
            Kind::Exit(Exit::Signal(number)) => {
                self.losses.add(Loss::Signal, 0);
                self.exit = Some(128 + number);
            }
            kind => self.losses.drop_event(kind),
        }
    }

    fn finish(&mut self, out: &mut Parts) {
        out.main.push_fmt(format_args!("\nScript done"));
        if let Some(code) = self.exit {
            out.main.push_fmt(format_args!(" [COMMAND_EXIT_CODE=\"{code}\"]"));
        }
        out.main.push(b'\n');
        // No output after a while is nothing that `scriptreplay` would take, but a field may come
        // late.
        let pause = self.end.as_micros() > self.last_us;
        let delay = self.delay(self.end);
        match self.form {
            Timing::Advanced => {
                let us = self.last_us;
                let before = if self.exit.is_some() { "0.000000" } else { &delay };
                out.timing.push_fmt(format_args!(
                    "H {before} DURATION {}.{:06}\n",
                    us / 1_000_000,
                    us % 1_000_000
                ));
                if let Some(code) = self.exit {
                    out.timing.push_fmt(format_args!("H {delay} EXIT_CODE {code}\n"));
                }
            }
            Timing::Classic if pause => self.losses.add(Loss::Pause, 0),
            Timing::Classic => {}
        }
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// Nanoseconds since 1970 as `2026-11-15 09:29:29+00:00`.
fn format_time(at: WallTime) -> String {
    let seconds = at.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years counted from March, so that the leap day comes last.
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}+00:00", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_script_does() {
        assert_eq!(format_time(WallTime::ZERO), "1970-01-01 00:00:00+00:00");
        assert_eq!(format_time(WallTime::from_secs(1_794_734_969)), "2026-11-15 09:29:29+00:00");
        assert_eq!(format_time(WallTime::from_secs(1_709_204_400)), "2024-02-29 11:00:00+00:00");
    }
}
