//! What a scrubber says it did.

/// Where something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// In what the program wrote.
    Output,
    /// In what was typed.
    Input,
    /// In a text beside the session.
    Field,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The rule's name.
    pub rule: String,
    /// Where.
    pub stream: Stream,
    /// Offset of the first masked byte in that stream; 0 in a text beside it.
    pub at: u64,
    /// Characters masked.
    pub length: usize,
}

/// What one rule found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleReport {
    /// Its name.
    pub name: String,
    /// Its pack.
    pub pack: String,
    /// Hits in output, input and texts beside them.
    pub output: u64,
    /// In what was typed.
    pub input: u64,
    /// In texts beside the session.
    pub fields: u64,
}

impl RuleReport {
    /// All of them.
    pub fn hits(&self) -> u64 {
        self.output + self.input + self.fields
    }
}

/// What was found, by every rule, those with nothing included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Each rule.
    pub rules: Vec<RuleReport>,
    /// The first hits, in the order in which they were found.
    pub positions: Vec<Hit>,
    /// Hits beyond these.
    pub more_positions: u64,
    /// Bytes of output and input that were masked.
    pub masked_bytes: u64,
    /// Different secrets that were learned.
    pub learned: usize,
    /// Payloads of sequences that were too long to be looked at.
    pub unseen_payloads: u64,
    /// Times that a known secret is still in the stored bytes, where it could not be masked without
    /// touching a sequence.
    pub residue: u64,
}

impl Report {
    /// Hits of all rules.
    pub fn hits(&self) -> u64 {
        self.rules.iter().map(RuleReport::hits).sum()
    }

    /// Whether everything that was found is gone, and everything was looked at.
    pub fn is_clean(&self) -> bool {
        self.residue == 0 && self.unseen_payloads == 0
    }
}
