//! A terminal's settings as the protocol spells them, so that the far terminal begins as the user's
//! is.

use russh::Pty;
use rustix::termios::{ControlModes, InputModes, LocalModes, OutputModes, SpecialCodeIndex as Code, Termios};

use super::super::TerminalSetup;

/// The settings to ask for. Without a terminal to take them from, the far side's own are good.
pub(super) fn pty_modes(setup: &TerminalSetup) -> Vec<(Pty, u32)> {
    let mut modes = setup.termios.as_ref().map(of_termios).unwrap_or_default();
    if setup.termios.is_none() {
        modes.push((Pty::IUTF8, 1));
    }
    if setup.no_echo {
        modes.retain(|(mode, _)| *mode != Pty::ECHO);
        modes.push((Pty::ECHO, 0));
    }
    modes
}

fn of_termios(t: &Termios) -> Vec<(Pty, u32)> {
    let codes = [
        (Pty::VINTR, Code::VINTR),
        (Pty::VQUIT, Code::VQUIT),
        (Pty::VERASE, Code::VERASE),
        (Pty::VKILL, Code::VKILL),
        (Pty::VEOF, Code::VEOF),
        (Pty::VEOL, Code::VEOL),
        (Pty::VEOL2, Code::VEOL2),
        (Pty::VSTART, Code::VSTART),
        (Pty::VSTOP, Code::VSTOP),
        (Pty::VSUSP, Code::VSUSP),
        (Pty::VREPRINT, Code::VREPRINT),
        (Pty::VWERASE, Code::VWERASE),
        (Pty::VLNEXT, Code::VLNEXT),
        (Pty::VDISCARD, Code::VDISCARD),
    ];
    // A key that is switched off is 0 here and 255 there.
    let key = |code| match t.special_codes[code] {
        0 => 255,
        code => u32::from(code),
    };
    let (i, l, o, c) = (t.input_modes, t.local_modes, t.output_modes, t.control_modes);
    let flags = [
        (Pty::IGNPAR, i.contains(InputModes::IGNPAR)),
        (Pty::PARMRK, i.contains(InputModes::PARMRK)),
        (Pty::INPCK, i.contains(InputModes::INPCK)),
        (Pty::ISTRIP, i.contains(InputModes::ISTRIP)),
        (Pty::INLCR, i.contains(InputModes::INLCR)),
        (Pty::IGNCR, i.contains(InputModes::IGNCR)),
        (Pty::ICRNL, i.contains(InputModes::ICRNL)),
        (Pty::IXON, i.contains(InputModes::IXON)),
        (Pty::IXANY, i.contains(InputModes::IXANY)),
        (Pty::IXOFF, i.contains(InputModes::IXOFF)),
        (Pty::IMAXBEL, i.contains(InputModes::IMAXBEL)),
        (Pty::IUTF8, i.contains(InputModes::IUTF8)),
        (Pty::ISIG, l.contains(LocalModes::ISIG)),
        (Pty::ICANON, l.contains(LocalModes::ICANON)),
        (Pty::ECHO, l.contains(LocalModes::ECHO)),
        (Pty::ECHOE, l.contains(LocalModes::ECHOE)),
        (Pty::ECHOK, l.contains(LocalModes::ECHOK)),
        (Pty::ECHONL, l.contains(LocalModes::ECHONL)),
        (Pty::NOFLSH, l.contains(LocalModes::NOFLSH)),
        (Pty::TOSTOP, l.contains(LocalModes::TOSTOP)),
        (Pty::IEXTEN, l.contains(LocalModes::IEXTEN)),
        (Pty::ECHOCTL, l.contains(LocalModes::ECHOCTL)),
        (Pty::ECHOKE, l.contains(LocalModes::ECHOKE)),
        (Pty::OPOST, o.contains(OutputModes::OPOST)),
        (Pty::ONLCR, o.contains(OutputModes::ONLCR)),
        (Pty::OCRNL, o.contains(OutputModes::OCRNL)),
        (Pty::ONOCR, o.contains(OutputModes::ONOCR)),
        (Pty::ONLRET, o.contains(OutputModes::ONLRET)),
        (Pty::CS8, c.contains(ControlModes::CS8)),
        (Pty::PARENB, c.contains(ControlModes::PARENB)),
        (Pty::PARODD, c.contains(ControlModes::PARODD)),
    ];
    let codes = codes.into_iter().map(|(mode, code)| (mode, key(code)));
    let flags = flags.into_iter().map(|(mode, on)| (mode, u32::from(on)));
    // Programs look at the speed to choose how much to draw; a connection is as fast as any
    // terminal.
    let speeds = [(Pty::TTY_OP_ISPEED, t.input_speed()), (Pty::TTY_OP_OSPEED, t.output_speed())];
    codes.chain(flags).chain(speeds).collect()
}
