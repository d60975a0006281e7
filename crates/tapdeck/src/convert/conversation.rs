//! The conversation of a recording: prompts and answers, without the screen.

use std::io::{BufReader, BufWriter};
use std::time::Duration;

use tapdeck_core::scrub::Scrubber;
use tapdeck_host::Source;
use tapdeck_tape::ahr::parts::EVENTS;
use tapdeck_tape::conversation::Conversation;
use tapdeck_tape::export::{self, ConversationAs};
use tapdeck_tape::scrub::{first_size, study};

use super::{Conversion, ConvertError, Converted, Main, Removed, Target, To, is_existing_same};
use crate::OutFile;
use crate::scrub::{Owner, Selection};

/// What became of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationReport {
    /// Prompts that were written.
    pub prompts: u64,
    /// The rules that masked something, and how often; `None` if nothing was to be masked.
    pub redacted: Option<Vec<(String, u64)>>,
}

impl Conversion {
    /// Writes the conversation.
    pub(super) fn write_conversation(&self, output: &mut Target<'_>) -> Result<Converted, ConvertError> {
        let form = match self.to {
            To::Md => ConversationAs::Md,
            To::Html => ConversationAs::Html,
            To::Json => ConversationAs::Json,
            other => return Err(ConvertError::NoConversationAs(other)),
        };
        let source = Source::find(&self.input, self.from, self.timing.as_deref())?;
        if let Target::File(path) = output
            && is_existing_same(path, &self.input)
        {
            return Err(ConvertError::SameFile(path.clone()));
        }
        let (conversation, report) = self.read_conversation(&source)?;
        if report.prompts == 0 {
            return Err(ConvertError::NoTurns(source.path().to_owned()));
        }
        let mut main = Main::create(output, self.overwrite, OutFile::create_shared)?;
        let written = export::conversation(form, &conversation, BufWriter::new(&mut main));
        match written {
            Ok(()) => main.commit()?,
            Err(tapdeck_tape::Error::Write { source, .. }) => {
                return Err(ConvertError::Write { path: main.path().to_owned(), source });
            }
            Err(e) => return Err(self.reading_failed(e)),
        }
        let ended = conversation.ended.or_else(|| conversation.turns().last().map(|turn| turn.answered));
        let lasted = conversation.started.zip(ended).map(|(started, ended)| ended.since(started));
        Ok(Converted {
            from: source.container(),
            to: self.to,
            events: conversation.entries.len() as u64,
            output_bytes: 0,
            duration: lasted.unwrap_or(Duration::ZERO),
            written: main.written,
            losses: Vec::new(),
            notes: Vec::new(),
            more_notes: 0,
            broke_off: None,
            conversation: Some(report),
            removed: Removed::default(),
        })
    }

    /// Reads the conversation, and says what was masked in it.
    fn read_conversation(&self, source: &Source) -> Result<(Conversation, ConversationReport), ConvertError> {
        let read = |scrubber: Option<&mut Scrubber>| {
            let events = source.sidecar(EVENTS).filter(|_| source.is_native());
            let events = events.ok_or_else(|| ConvertError::NoTurns(source.path().to_owned()))?;
            Conversation::read(BufReader::new(events), source.meta().as_ref(), scrubber)
                .map_err(|e| self.reading_failed(e))
        };
        let report = |conversation: &Conversation, redacted| {
            let prompts = conversation.turns().count() as u64;
            ConversationReport { prompts, redacted }
        };
        let Some(selection) = &self.redact else {
            let conversation = read(None)?;
            let report = report(&conversation, None);
            return Ok((conversation, report));
        };
        let mut scrubber = self.scrubber(source, selection)?;
        // What is recognized at the end is masked at the beginning, too.
        read(Some(&mut scrubber))?;
        scrubber.forget_fields();
        let conversation = read(Some(&mut scrubber))?;
        let rules = scrubber.report().rules.into_iter();
        let hits = rules.filter(|rule| rule.fields > 0).map(|rule| (rule.name, rule.fields));
        let report = report(&conversation, Some(hits.collect()));
        Ok((conversation, report))
    }

    /// A scrubber that knows the secrets which the recording shows.
    fn scrubber(&self, source: &Source, selection: &Selection) -> Result<Scrubber, ConvertError> {
        let cwd = source.meta().and_then(|meta| meta.cwd);
        let rules = selection.load(&Owner::of_process(cwd))?;
        let size = first_size(source.open()?.header());
        Ok(study(Scrubber::new(rules, size), || source.open())?)
    }
}
