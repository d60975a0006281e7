//! Scrubbing: secrets are taken out of a session without changing its shape.
//!
//! A [`Scrubber`] reads what the program wrote and what was typed, in order, and finds out which
//! bytes would show something that must not be seen. It judges what a terminal would show
//! ([`tapdeck_term::Tracer`]), so it makes no difference whether a secret came whole, in single
//! bytes, with colours inside, wrapped at the edge or put together by moving the cursor. What comes
//! out are [`Masks`]: other bytes of the same number for the characters that showed it, as wide as
//! those were. No escape sequence is touched, no offset changes, every frame keeps its shape.
//!
//! Rules are data ([`BUILTIN`]). What a rule for secrets found is known from then on and masked
//! wherever it is seen, also in part; a second reading with what the first has learned finds it
//! before the place where it was first recognised. A password that was typed without an echo, or
//! where the screen asks for one, is such a secret, too.

mod doubt;
mod eye;
mod input;
mod known;
mod masks;
mod payload;
mod report;
mod rules;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tapdeck_term::{Size, Tracer};

pub use masks::Masks;
pub use report::{Hit, Report, RuleReport, Stream as ScrubStream};
pub use rules::{Rule, RuleError, Rules, Secret};
pub use table::{BUILTIN, Builtin, PACKS};

use eye::Eye;
use input::{EditorWatch, Typed};

/// Finds what must not be seen in a session.
#[derive(Clone, Debug)]
pub struct Scrubber {
    size: Size,
    tracer: Tracer,
    eye: Eye,
    typed: Typed,
    editor: EditorWatch,
}

impl Scrubber {
    /// A scrubber at the beginning of a session.
    pub fn new(rules: Arc<Rules>, size: Size) -> Self {
        Self {
            size,
            tracer: Tracer::new(size),
            eye: Eye::new(rules),
            typed: Typed::default(),
            editor: EditorWatch::default(),
        }
    }

    /// Goes back to the session's beginning and keeps what was learned about its secrets.
    pub fn again(self) -> Self {
        Self {
            size: self.size,
            tracer: Tracer::new(self.size),
            eye: self.eye.again(),
            typed: Typed::default(),
            editor: EditorWatch::default(),
        }
    }

    /// How many secrets have been learned.
    pub fn learned(&self) -> usize {
        self.eye.learned()
    }

    /// Takes what the program wrote.
    pub fn output(&mut self, bytes: &[u8]) {
        let eye = &mut self.eye;
        self.editor.feed(bytes, self.tracer.offset(), |at| eye.editor_begins(at));
        self.tracer.feed(bytes, &mut self.eye);
    }

    /// So many bytes of the output are missing.
    pub fn lost(&mut self, n: u64) {
        self.tracer.skip(n, &mut self.eye);
    }

    /// Takes what was typed.
    pub fn input(&mut self, bytes: &[u8]) {
        self.typed.feed(bytes, false, &self.tracer, &mut self.eye);
    }

    /// Takes what was typed while the terminal showed nothing of it: a password.
    pub fn hidden_input(&mut self, bytes: &[u8]) {
        self.typed.feed(bytes, true, &self.tracer, &mut self.eye);
    }

    /// Takes what was typed and is not kept, to learn passwords from it. Nothing of it is counted
    /// or masked.
    pub fn overhear(&mut self, bytes: &[u8], hidden: bool) {
        self.typed.is_kept = false;
        self.typed.feed(bytes, hidden, &self.tracer, &mut self.eye);
    }

    /// The terminal took another size.
    pub fn resize(&mut self, size: Size) {
        self.tracer.resize(size, &mut self.eye);
    }

    /// Judges everything that was read so far, finished or not.
    pub fn settle(&mut self) {
        self.tracer.settle(&mut self.eye);
        self.typed.settle(&mut self.eye);
    }

    /// The end of the session.
    pub fn finish(&mut self) {
        self.tracer.finish(&mut self.eye);
        self.typed.settle(&mut self.eye);
    }

    /// Scrubs a text beside the session: a title, a label, an argument.
    pub fn text(&mut self, text: &str) -> String {
        self.eye.field(text)
    }

    /// Takes back what was counted in texts beside the session, which were only looked at to learn
    /// from them.
    pub fn forget_fields(&mut self) {
        self.eye.forget_fields();
    }

    /// Whether the line that the cursor is on, or the line being typed, may be the beginning of
    /// something that is to be masked.
    pub fn is_open(&self) -> bool {
        self.typed.is_open() || self.eye.is_open(&self.tracer.before_cursor())
    }

    /// What of the output is to be masked.
    pub fn output_masks(&self) -> &Masks {
        &self.eye.output
    }

    /// What of the input is to be masked.
    pub fn input_masks(&self) -> &Masks {
        &self.eye.input
    }

    /// Forgets masks before these offsets of output and input, which have been used.
    pub fn forget_before(&mut self, output: u64, input: u64) {
        self.eye.output.forget_before(output);
        self.eye.input.forget_before(input);
    }

    /// Looks for known secrets in masked bytes as they will be stored, whatever they mean to a
    /// terminal, and counts what is left.
    pub fn inspect(&mut self, masked: &[u8]) {
        self.eye.inspect(masked);
    }

    /// What was found.
    pub fn report(&self) -> Report {
        self.eye.report()
    }
}
