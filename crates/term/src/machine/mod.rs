//! The terminal's state and what each token does to it.
//!
//! The parser calls [`Machine`] through the `Sink` trait; each family of functions has a file of
//! its own. A token's end offset is kept in `now` while it is carried out, and every row it writes
//! to takes that as its provenance.

mod c0;
mod csi;
mod cursor;
mod dcs;
mod edit;
mod erase;
mod esc;
mod mode_switch;
mod osc;
mod print;
mod rect;
mod reply;
mod reset;
mod resize;
mod save;
mod scroll;
mod sgr;
mod sgr_cache;
mod titles;
mod vt52;

use crate::cell::Cell;
use crate::changes::{RowSet, Signal};
use crate::charset::Charsets;
use crate::clusters::Clusters;
use crate::grid::Grid;
use crate::links::Links;
use crate::modes::{Mode, Modes};
use crate::palette::Palette;
use crate::scrollback::Scrollback;
use crate::size::{Settings, Size};
use crate::style::{Attrs, Pen, StyleId, Styles};
use crate::unicode::{Joiner, Props};

pub(crate) use save::Saved;

/// Signals kept for one call of feed; a flood beyond that is dropped.
const MAX_SIGNALS: usize = 4096;
/// Bytes of replies kept for one call of feed.
const MAX_REPLIES: usize = 1 << 20;

/// How the cursor is drawn (DECSCUSR).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CursorShape {
    /// As the settings of the terminal say.
    #[default]
    Default,
    /// A block.
    Block,
    /// A line below.
    Underline,
    /// A line before.
    Bar,
}

impl CursorShape {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Default, Self::Block, Self::Underline, Self::Bar];

    /// The word for it in files and protocols: `default`, `block`, `underline` or `bar`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Block => "block",
            Self::Underline => "underline",
            Self::Bar => "bar",
        }
    }

    /// The shape of a [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }
}

/// Where the cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Pos {
    pub(crate) x: usize,
    pub(crate) y: usize,
    /// The last column was written: the next character wraps first.
    pub(crate) pending: bool,
}

/// Which protection selective and plain erasure honour, as the last of DECSCA and SPA/EPA used
/// says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Protection {
    #[default]
    Off,
    Dec,
    Iso,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) size: Size,
    pub(crate) settings: Settings,
    /// The screen shown.
    pub(crate) grid: Grid,
    /// The screen not shown: the alternate one while the main one is shown, and the other way
    /// round.
    pub(crate) hidden: Grid,
    pub(crate) pos: Pos,
    pub(crate) pen: Pen,
    /// The pen's number, stale while `pen_changed`, and that of what erasing leaves, stale while
    /// `erase_changed`.
    pen_id: StyleId,
    erase_id: StyleId,
    pen_changed: bool,
    erase_changed: bool,
    pub(crate) protection: Protection,
    /// Saved cursors of the main and the alternate screen.
    pub(crate) saved: [Option<Saved>; 2],
    pub(crate) top: usize,
    pub(crate) bottom: usize,
    pub(crate) left: usize,
    pub(crate) right: usize,
    pub(crate) modes: Modes,
    pub(crate) saved_modes: Vec<(u16, bool)>,
    pub(crate) tabs: Vec<bool>,
    pub(crate) charsets: Charsets,
    /// Whether the next ASCII bytes can be copied to the grid as they are.
    plain_print: bool,
    pub(crate) utf8: bool,
    /// Replies use 8-bit controls (S8C1T).
    pub(crate) eight_bit: bool,
    /// 61–65: the conformance level set by DECSCL.
    pub(crate) level: u8,
    pub(crate) shape: CursorShape,
    pub(crate) blink: bool,
    pub(crate) title: String,
    pub(crate) icon: String,
    pub(crate) title_stack: Vec<(Option<String>, Option<String>)>,
    pub(crate) palette: Palette,
    pub(crate) palette_stack: Vec<Palette>,
    pub(crate) pen_stack: Vec<Pen>,
    pub(crate) kitty_stacks: [Vec<u8>; 2],
    /// DECSACE: rectangles change whole rectangles, not the stretch of text between two points.
    pub(crate) rect_exact: bool,
    pub(crate) status_display: u16,
    pub(crate) format_other_keys: u8,
    pub(crate) modifier_resources: [Option<u16>; 8],
    pub(crate) directory: String,
    pub(crate) scrollback: Scrollback,
    pub(crate) styles: Styles,
    sgr_cache: sgr_cache::SgrCache,
    pub(crate) clusters: Clusters,
    pub(crate) links: Links,
    props: Props,
    joiner: Joiner,
    /// There has been a double-width row.
    has_double: bool,
    /// Cells that were printed hold where they came from instead of a style (see
    /// [`crate::Tracer`]).
    pub(crate) tracing: bool,
    /// While tracing, the rows that left the main screen at the top: how many cells, and what they
    /// knew.
    pub(crate) lost: Vec<(usize, crate::grid::RowMeta)>,
    pub(crate) lost_cells: Vec<Cell>,
    /// What REP repeats.
    last_char: Option<char>,
    /// End offset of the token being carried out.
    now: u64,
    pub(crate) damage: RowSet,
    pub(crate) replies: Vec<u8>,
    pub(crate) signals: Vec<Signal>,
    /// Set by the few tokens after which the parser has to change its ways.
    pub(crate) parser_reset: bool,
}

impl Machine {
    pub(crate) fn new(size: Size, settings: Settings) -> Self {
        let size = size.clamped(settings.max_side);
        let (cols, rows) = (usize::from(size.cols), usize::from(size.rows));
        let mut m = Self {
            size,
            grid: Grid::new(cols, rows),
            hidden: Grid::new(cols, rows),
            pos: Pos::default(),
            pen: Pen::default(),
            pen_id: StyleId(0),
            erase_id: StyleId(0),
            pen_changed: false,
            erase_changed: false,
            protection: Protection::Off,
            saved: [None, None],
            top: 0,
            bottom: rows - 1,
            left: 0,
            right: cols - 1,
            modes: Modes::default(),
            saved_modes: Vec::new(),
            tabs: default_tabs(cols),
            charsets: Charsets::new(),
            plain_print: true,
            utf8: true,
            eight_bit: false,
            level: 65,
            shape: CursorShape::Default,
            blink: false,
            title: String::new(),
            icon: String::new(),
            title_stack: Vec::new(),
            palette: Palette::default(),
            palette_stack: Vec::new(),
            pen_stack: Vec::new(),
            kitty_stacks: [Vec::new(), Vec::new()],
            rect_exact: false,
            status_display: 0,
            format_other_keys: 0,
            modifier_resources: [None; 8],
            directory: String::new(),
            scrollback: Scrollback::new(settings.scrollback, settings.scrollback_bytes),
            styles: Styles::new(),
            sgr_cache: sgr_cache::SgrCache::new(),
            clusters: Clusters::new(),
            links: Links::new(),
            props: Props::new(),
            joiner: Joiner::NONE,
            has_double: false,
            tracing: false,
            lost: Vec::new(),
            lost_cells: Vec::new(),
            last_char: None,
            now: 0,
            damage: RowSet::default(),
            replies: Vec::new(),
            signals: Vec::new(),
            parser_reset: false,
            settings,
        };
        m.initial_modes();
        m
    }

    fn initial_modes(&mut self) {
        self.modes = Modes::default();
        self.modes.set(Mode::Clusters, self.settings.clusters);
        self.modes.set(Mode::Newline, self.settings.newline_mode);
        self.modes.set(Mode::Vt52, self.settings.vt52);
        self.update_print_path();
    }

    #[inline]
    pub(crate) fn cols(&self) -> usize {
        self.grid.cols
    }

    #[inline]
    pub(crate) fn rows(&self) -> usize {
        self.grid.rows
    }

    /// 0 for the main screen, 1 for the alternate.
    pub(crate) fn screen_index(&self) -> usize {
        usize::from(self.modes.alternate())
    }

    #[inline]
    fn dirty(&mut self, y: usize) {
        self.damage.insert(y);
    }

    fn dirty_all(&mut self) {
        self.damage.insert_range(0..=self.rows() - 1);
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.signals.len() < MAX_SIGNALS {
            self.signals.push(signal);
        }
    }

    /// The number of the pen's style.
    #[inline]
    fn pen_id(&mut self) -> StyleId {
        if self.pen_changed {
            self.intern_pen();
        }
        self.pen_id
    }

    /// The number of the style that erased cells get: the pen's background.
    #[inline]
    fn erase_id(&mut self) -> StyleId {
        if self.erase_changed {
            self.erase_changed = false;
            self.erase_id = self.styles.intern_pen(Pen { bg: self.pen.bg, ..Pen::default() });
        }
        self.erase_id
    }

    fn intern_pen(&mut self) {
        self.pen_changed = false;
        self.pen_id = self.styles.intern_pen(self.pen);
        if self.styles.wants_sweep() {
            self.sweep_styles();
        }
    }

    /// Marks the pen as changed, so that its number is looked up before it is next used.
    #[inline]
    pub(crate) fn touch_pen(&mut self) {
        self.pen_changed = true;
        self.erase_changed = true;
    }

    #[cold]
    fn sweep_styles(&mut self) {
        if self.tracing {
            // While tracing, the numbers in the cells are no styles, and none is asked for.
            self.styles = Styles::new();
            self.sgr_cache.forget_numbers();
            self.erase_changed = true;
            return;
        }
        let mut live = vec![false; self.styles.len()];
        live[self.pen_id.0 as usize] = true;
        live[self.erase_id.0 as usize] = true;
        for grid in [&mut self.grid, &mut self.hidden] {
            grid.each_mut(|c| live[c.style.0 as usize] = true);
        }
        let renumbered = self.styles.sweep(&live);
        self.sgr_cache.forget_numbers();
        for grid in [&mut self.grid, &mut self.hidden] {
            grid.each_mut(|c| c.style = renumbered[c.style.0 as usize]);
        }
        self.pen_id = renumbered[self.pen_id.0 as usize];
        self.erase_id = renumbered[self.erase_id.0 as usize];
    }

    #[cold]
    fn sweep_clusters(&mut self) {
        let mut live = vec![false; self.clusters.len()];
        for grid in [&mut self.grid, &mut self.hidden] {
            grid.each_mut(|c| {
                if c.is_cluster() {
                    live[c.value() as usize] = true;
                }
            });
        }
        let renumbered = self.clusters.sweep(&live);
        for grid in [&mut self.grid, &mut self.hidden] {
            grid.each_mut(|c| {
                if c.is_cluster() {
                    c.text = c.text - c.value() + renumbered[c.value() as usize];
                }
            });
        }
    }

    /// Whether two cells look the same; where cells hold no style, by their text.
    #[inline]
    fn same_looks(&self, a: Cell, b: Cell) -> bool {
        a == b || (self.tracing && a.text == b.text)
    }

    /// While tracing, what is printed next gets this instead of a style.
    pub(crate) fn set_trace(&mut self, trace: u32) {
        self.pen_id = StyleId(trace);
        self.pen_changed = false;
    }

    /// While tracing, how many characters of plain text go to the cursor's row as they are.
    pub(crate) fn plain_room(&self) -> usize {
        if !self.plain_print || self.pos.pending || !self.joiner.is_closed() {
            return 0;
        }
        (self.right_limit() + 1).saturating_sub(self.pos.x)
    }

    /// While tracing, keeps a row that leaves the screen, for the witness to read what was in it.
    fn lose_row(&mut self, y: usize) {
        self.lost.push((self.grid.row(y).len(), *self.grid.meta(y)));
        self.lost_cells.extend_from_slice(self.grid.row(y));
        // Where its text came from is of no use in scrollback, and would not pack well.
        self.grid.forget_styles(y);
    }

    /// Whether a cell is spared by erasure that honours protection.
    fn is_protected(&self, cell: Cell) -> bool {
        if self.tracing {
            return !cell.is_empty() && cell.style.0 & crate::trace::PROTECTED != 0;
        }
        self.styles.get(cell.style).attrs.contains(Attrs::PROTECTED)
    }

    /// Works out again whether ASCII can go to the grid as it is.
    pub(crate) fn update_print_path(&mut self) {
        self.plain_print = self.charsets.is_plain() && !self.modes.insert();
    }

    /// The absolute number of a screen row: rows above it since the beginning.
    pub(crate) fn absolute_row(&self, y: usize) -> u64 {
        self.scrollback.evicted() + self.scrollback.len() as u64 + y as u64
    }
}

/// Tab stops at every eighth column.
pub(crate) fn default_tabs(cols: usize) -> Vec<bool> {
    (0..cols).map(|x| x > 0 && x % 8 == 0).collect()
}
