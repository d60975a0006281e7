//! What the tests of the views share: a stage on which keys go in and a screen comes out, and a
//! session made of paper.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::live::{Link, News};

/// A buffer's rows as text.
pub(super) fn text(buf: &Buffer) -> Vec<String> {
    let rows = buf.content.chunks(usize::from(buf.area.width).max(1));
    let row = |cells: &[ratatui::buffer::Cell]| {
        let mut out = String::new();
        let mut skip = 0;
        for cell in cells {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
            out.push_str(cell.symbol());
        }
        out.trim_end().to_owned()
    };
    rows.map(row).collect()
}

/// A terminal of this size.
pub(super) fn terminal(cols: u16, rows: u16) -> Terminal<TestBackend> {
    Terminal::new(TestBackend::new(cols, rows)).expect("in memory")
}

/// What a session of paper is told, and what it will tell.
#[derive(Default)]
pub(super) struct Paper {
    pub(super) news: VecDeque<News>,
    pub(super) name: Option<String>,
    pub(super) sent: Vec<u8>,
    pub(super) refuses: Option<String>,
    pub(super) ended: bool,
    pub(super) marks: Vec<String>,
    pub(super) paused: bool,
    pub(super) released: bool,
    pub(super) outlives: bool,
}

/// The way to it.
#[derive(Clone, Default)]
pub(super) struct PaperLink(pub(super) Rc<RefCell<Paper>>);

impl Link for PaperLink {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn news(&mut self, news: &mut Vec<News>) {
        news.extend(self.0.borrow_mut().news.drain(..));
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0.borrow_mut().sent.extend_from_slice(bytes);
        Ok(())
    }

    fn take(&mut self) -> Result<(), String> {
        self.0.borrow().refuses.clone().map_or(Ok(()), Err)
    }

    fn release(&mut self) {
        self.0.borrow_mut().released = true;
    }

    fn mark(&mut self, label: &str) -> Result<(), String> {
        self.0.borrow_mut().marks.push(label.to_owned());
        Ok(())
    }

    fn pause(&mut self) -> Result<(), String> {
        let mut paper = self.0.borrow_mut();
        paper.paused = !paper.paused;
        let news = News::Paused(paper.paused, None);
        paper.news.push_back(news);
        Ok(())
    }

    fn end(&mut self) {
        self.0.borrow_mut().ended = true;
    }

    fn outlives(&self) -> bool {
        self.0.borrow().outlives
    }

    fn own_name(&self) -> &str {
        "me"
    }
}
