//! The modes that programs switch: ANSI modes, DEC private modes and the keyboard's.

/// One on/off mode. The discriminant is its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    // ANSI
    KeyboardLocked,
    Insert,
    LocalEcho,
    Newline,
    // DEC private
    CursorKeys,
    Vt52,
    Columns132,
    SmoothScroll,
    Reverse,
    Origin,
    Wrap,
    AutoRepeat,
    BlinkCursor,
    FormFeed,
    PrintScreen,
    CursorVisible,
    Allow132,
    MoreFix,
    National,
    MarginBell,
    ReverseWrap,
    KeypadApplication,
    BackarrowBs,
    Margins,
    SixelScroll,
    KeepOnColumns,
    Focus,
    AlternateScroll,
    EightBitMeta,
    AltSendsEscape,
    ReverseWrapAny,
    Paste,
    Synchronised,
    Clusters,
    SchemeReports,
    ResizeReports,
    SixelPrivate,
    /// Shown is the alternate screen.
    Alternate,
    /// The program itself allowed the column switch (mode 40).
    Asked132,
}

/// The number of each DEC private mode that is a plain switch.
pub(crate) const DEC_MODES: &[(u16, Mode)] = &[
    (1, Mode::CursorKeys),
    (3, Mode::Columns132),
    (4, Mode::SmoothScroll),
    (5, Mode::Reverse),
    (6, Mode::Origin),
    (7, Mode::Wrap),
    (8, Mode::AutoRepeat),
    (12, Mode::BlinkCursor),
    (18, Mode::FormFeed),
    (19, Mode::PrintScreen),
    (25, Mode::CursorVisible),
    (40, Mode::Allow132),
    (41, Mode::MoreFix),
    (42, Mode::National),
    (44, Mode::MarginBell),
    (45, Mode::ReverseWrap),
    (66, Mode::KeypadApplication),
    (67, Mode::BackarrowBs),
    (69, Mode::Margins),
    (80, Mode::SixelScroll),
    (95, Mode::KeepOnColumns),
    (1004, Mode::Focus),
    (1007, Mode::AlternateScroll),
    (1034, Mode::EightBitMeta),
    (1036, Mode::AltSendsEscape),
    (1045, Mode::ReverseWrapAny),
    (1070, Mode::SixelPrivate),
    (2004, Mode::Paste),
    (2026, Mode::Synchronised),
    (2027, Mode::Clusters),
    (2031, Mode::SchemeReports),
    (2048, Mode::ResizeReports),
];

/// The number of each ANSI mode.
pub(crate) const ANSI_MODES: &[(u16, Mode)] =
    &[(2, Mode::KeyboardLocked), (4, Mode::Insert), (12, Mode::LocalEcho), (20, Mode::Newline)];

/// What the mouse reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MouseTracking {
    /// Nothing.
    #[default]
    Off,
    /// Presses only (mode 9).
    X10,
    /// Presses and releases (mode 1000).
    Normal,
    /// Highlight tracking (mode 1001).
    Highlight,
    /// Motion with a button down too (mode 1002).
    Button,
    /// All motion (mode 1003).
    Any,
}

impl MouseTracking {
    /// The mode's number, 0 when off.
    pub const fn number(self) -> u16 {
        match self {
            Self::Off => 0,
            Self::X10 => 9,
            Self::Normal => 1000,
            Self::Highlight => 1001,
            Self::Button => 1002,
            Self::Any => 1003,
        }
    }

    pub(crate) const fn from_number(n: u16) -> Option<Self> {
        Some(match n {
            9 => Self::X10,
            1000 => Self::Normal,
            1001 => Self::Highlight,
            1002 => Self::Button,
            1003 => Self::Any,
            _ => return None,
        })
    }
}

/// How mouse reports are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MouseEncoding {
    /// One byte a coordinate.
    #[default]
    Bytes,
    /// UTF-8 coordinates (mode 1005).
    Utf8,
    /// Decimal, press and release told apart (mode 1006).
    Sgr,
    /// Decimal (mode 1015).
    Urxvt,
    /// As SGR, in pixels (mode 1016).
    SgrPixels,
}

impl MouseEncoding {
    /// The mode's number, 0 for the default.
    pub const fn number(self) -> u16 {
        match self {
            Self::Bytes => 0,
            Self::Utf8 => 1005,
            Self::Sgr => 1006,
            Self::Urxvt => 1015,
            Self::SgrPixels => 1016,
        }
    }

    pub(crate) const fn from_number(n: u16) -> Option<Self> {
        Some(match n {
            1005 => Self::Utf8,
            1006 => Self::Sgr,
            1015 => Self::Urxvt,
            1016 => Self::SgrPixels,
            _ => return None,
        })
    }
}

/// The modes in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    bits: u64,
    pub(crate) mouse: MouseTracking,
    pub(crate) mouse_encoding: MouseEncoding,
    pub(crate) kitty: u8,
    pub(crate) modify_other_keys: u8,
}

impl Default for Modes {
    fn default() -> Self {
        let mut m = Self {
            bits: 0,
            mouse: MouseTracking::Off,
            mouse_encoding: MouseEncoding::Bytes,
            kitty: 0,
            modify_other_keys: 0,
        };
        for on in [
            Mode::Wrap,
            Mode::AutoRepeat,
            Mode::CursorVisible,
            Mode::AltSendsEscape,
            Mode::AlternateScroll,
            Mode::Allow132,
        ] {
            m.set(on, true);
        }
        m
    }
}

impl Modes {
    #[inline]
    pub(crate) fn has(&self, mode: Mode) -> bool {
        self.bits >> mode as u8 & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, mode: Mode, on: bool) {
        self.bits = self.bits & !(1 << mode as u8) | u64::from(on) << mode as u8;
    }

    /// Whether the alternate screen is shown.
    pub fn alternate(&self) -> bool {
        self.has(Mode::Alternate)
    }

    /// Whether arrow keys send their application codes (DECCKM).
    pub fn cursor_keys(&self) -> bool {
        self.has(Mode::CursorKeys)
    }

    /// Whether the keypad sends its application codes (DECKPAM).
    pub fn keypad_application(&self) -> bool {
        self.has(Mode::KeypadApplication)
    }

    /// Whether the cursor is shown.
    pub fn cursor_visible(&self) -> bool {
        self.has(Mode::CursorVisible)
    }

    /// Whether pastes are put in brackets.
    pub fn bracketed_paste(&self) -> bool {
        self.has(Mode::Paste)
    }

    /// Whether focus changes are reported.
    pub fn focus(&self) -> bool {
        self.has(Mode::Focus)
    }

    /// Whether a synchronised update is going on (mode 2026). Nothing is withheld meanwhile: a
    /// painter may wait for its end, up to a deadline of its own.
    pub fn synchronised(&self) -> bool {
        self.has(Mode::Synchronised)
    }

    /// Whether lines wrap at the right margin.
    pub fn wrap(&self) -> bool {
        self.has(Mode::Wrap)
    }

    /// Whether the cursor is addressed relative to the margins (DECOM).
    pub fn origin(&self) -> bool {
        self.has(Mode::Origin)
    }

    /// Whether characters are inserted (IRM).
    pub fn insert(&self) -> bool {
        self.has(Mode::Insert)
    }

    /// Whether a line feed returns the carriage, and Enter sends both (LNM).
    pub fn newline(&self) -> bool {
        self.has(Mode::Newline)
    }

    /// Whether the screen's colours are swapped (DECSCNM).
    pub fn reverse_video(&self) -> bool {
        self.has(Mode::Reverse)
    }

    /// Whether VT52 sequences are spoken.
    pub fn vt52(&self) -> bool {
        self.has(Mode::Vt52)
    }

    /// Whether grapheme clusters share a cell (mode 2027).
    pub fn clusters(&self) -> bool {
        self.has(Mode::Clusters)
    }

    /// Whether the program wants to be told of size changes in band (mode 2048).
    pub fn resize_reports(&self) -> bool {
        self.has(Mode::ResizeReports)
    }

    /// Whether the program wants to be told of colour scheme changes (mode 2031).
    pub fn scheme_reports(&self) -> bool {
        self.has(Mode::SchemeReports)
    }

    /// Whether the wheel becomes arrow keys on the alternate screen (mode 1007).
    pub fn alternate_scroll(&self) -> bool {
        self.has(Mode::AlternateScroll)
    }

    /// Whether Backspace sends BS and not DEL (DECBKM).
    pub fn backarrow_sends_bs(&self) -> bool {
        self.has(Mode::BackarrowBs)
    }

    /// What the mouse reports.
    pub fn mouse(&self) -> MouseTracking {
        self.mouse
    }

    /// How the mouse reports.
    pub fn mouse_encoding(&self) -> MouseEncoding {
        self.mouse_encoding
    }

    /// The kitty keyboard flags in force.
    pub fn kitty_keyboard(&self) -> u8 {
        self.kitty
    }

    /// xterm's modifyOtherKeys level.
    pub fn modify_other_keys(&self) -> u8 {
        self.modify_other_keys
    }

    /// The numbers of all modes that are set, DEC private ones as `?n`, for reports to people and
    /// programs.
    pub fn names(&self) -> Vec<String> {
        let mut out: Vec<String> =
            ANSI_MODES.iter().filter(|(_, m)| self.has(*m)).map(|(n, _)| n.to_string()).collect();
        out.extend(DEC_MODES.iter().filter(|(_, m)| self.has(*m)).map(|(n, _)| format!("?{n}")));
        if self.alternate() {
            out.push("?1049".to_owned());
        }
        for n in [self.mouse.number(), self.mouse_encoding.number()] {
            if n != 0 {
                out.push(format!("?{n}"));
            }
        }
        out
    }
}
