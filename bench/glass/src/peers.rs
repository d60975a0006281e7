//! The terminal models under test, behind one small trait.

use crate::workloads::{COLS, ROWS};

/// Takes output and keeps a screen of it.
pub(crate) trait Model {
    fn feed(&mut self, bytes: &[u8]);
}

/// Name and maker, given the rows of scrollback to keep.
pub(crate) type Peer = (&'static str, fn(usize) -> Box<dyn Model>);

pub(crate) const PEERS: &[Peer] = &[
    ("tapdeck-term", |n| {
        let settings = tapdeck_term::Settings::default().scrollback(n);
        let size = tapdeck_term::Size::new(COLS as u16, ROWS as u16);
        Box::new(Ours(tapdeck_term::Term::new(size, settings)))
    }),
    ("fux-vt", |n| {
        let size = fux_vt::Size::new(ROWS as u16, COLS as u16).expect("a size");
        // Its history is bounded in bytes: 24 a row, 8 a cell, and text.
        Box::new(Fux(fux_vt::Parser::new(size, n * (24 + 9 * COLS)).expect("a parser")))
    }),
    ("rio-vt", |n| {
        use rio_vt::crosswords::{Crosswords, CrosswordsSize};
        let term = Crosswords::new(
            CrosswordsSize::new(COLS, ROWS),
            rio_vt::ansi::CursorShape::Block,
            rio_vt::event::VoidListener,
            rio_vt::event::WindowId::from(0),
            0,
            n,
        );
        Box::new(Rio { term, parser: rio_vt::performer::handler::Processor::default() })
    }),
    ("alacritty_terminal", |n| {
        let config = alacritty_terminal::term::Config { scrolling_history: n, ..Default::default() };
        let size = alacritty_terminal::term::test::TermSize::new(COLS, ROWS);
        let term = alacritty_terminal::Term::new(config, &size, alacritty_terminal::event::VoidListener);
        Box::new(Alacritty { term, parser: alacritty_terminal::vte::ansi::Processor::new() })
    }),
    ("vt100", |n| {
        let side = |n: usize| std::num::NonZero::new(n as u16).expect("not zero");
        Box::new(Vt100(vt100::Parser::new(side(ROWS), side(COLS), n)))
    }),
    ("avt", |n| Box::new(Avt(avt::Terminal::with_scrollback(COLS, ROWS, Some(n)).expect("a terminal")))),
];

/// Not models: a parser that does nothing and a search for ESC as limits, and our follower of
/// modes.
pub(crate) const LIMITS: &[Peer] = &[
    ("(vte parser alone)", |_| Box::new(Vte { parser: vte::Parser::new(), nothing: Nothing })),
    ("(memchr for ESC)", |_| Box::new(Search(0))),
    ("(ModeWatch)", |_| Box::new(Watch(tapdeck_term::ModeWatch::new()))),
];

struct Ours(tapdeck_term::Term);

impl Model for Ours {
    fn feed(&mut self, bytes: &[u8]) {
        std::hint::black_box(self.0.feed(bytes));
    }
}

struct Fux(fux_vt::Parser);

impl Model for Fux {
    fn feed(&mut self, bytes: &[u8]) {
        std::hint::black_box(self.0.process(bytes).is_ok());
    }
}

struct Rio {
    term: rio_vt::crosswords::Crosswords<rio_vt::event::VoidListener>,
    parser: rio_vt::performer::handler::Processor,
}

impl Model for Rio {
    fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }
}

struct Alacritty {
    term: alacritty_terminal::Term<alacritty_terminal::event::VoidListener>,
    parser: alacritty_terminal::vte::ansi::Processor,
}

impl Model for Alacritty {
    fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }
}

struct Vt100(vt100::Parser);

impl Model for Vt100 {
    fn feed(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }
}

/// It takes text: decoding is part of what it costs.
struct Avt(avt::Terminal);

impl Model for Avt {
    fn feed(&mut self, bytes: &[u8]) {
        self.0.feed(&*String::from_utf8_lossy(bytes));
    }
}

struct Nothing;

impl vte::Perform for Nothing {
    fn print(&mut self, c: char) {
        std::hint::black_box(c);
    }
}

struct Vte {
    parser: vte::Parser,
    nothing: Nothing,
}

impl Model for Vte {
    fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.nothing, bytes);
    }
}

struct Search(usize);

impl Model for Search {
    fn feed(&mut self, bytes: &[u8]) {
        self.0 += memchr::memchr_iter(0x1b, bytes).count();
    }
}

struct Watch(tapdeck_term::ModeWatch);

impl Model for Watch {
    fn feed(&mut self, bytes: &[u8]) {
        self.0.feed(bytes);
    }
}
