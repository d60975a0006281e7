//! Snapshot IPC: a tool that takes a snapshot of the file system announces it to the recorder, and
//! learns where in the recording it belongs. A tool can also write an instruction for the agent
//! into the recording, at a place of its output.
//!
//! A frame is a length (u32, little-endian) and that many bytes: an SSZ union, so a selector and a
//! value.
//!
//! | message | selector | value |
//! | --- | --- | --- |
//! | request, snapshot | 0 | id u64, offset u32 (always 12), label |
//! | request, instruction | 1 | id u64, anchor_byte u64, offset u32 (always 20), text |
//! | response, success | 0 | id u64, anchor_byte u64, ts_ns u64 |
//! | response, failure | 1 | UTF-8 text |
//!
//! An instruction with the id 0 is new, and the response has its id. With the id of another it
//! replaces that one, and without text deletes it. Its anchor is the number of bytes of output
//! before its place; 2^64 − 1, or any number that is too large, is the newest output. Recorders of
//! earlier versions answer selector 1 with a failure.
//!
//! Decoding is strict: a value has one encoding, and an error says what is wrong with any other
//! bytes.

/// The longest frame, without its length.
pub const MAX_FRAME: usize = 64 * 1024;
/// The longest label that fits into a frame.
pub const MAX_LABEL: usize = MAX_FRAME - REQUEST_HEAD;

/// Selector, id, offset of the label.
const REQUEST_HEAD: usize = 1 + 8 + 4;
/// Selector, id, anchor, offset of the text.
const INSTRUCTION_HEAD: usize = 1 + 8 + 8 + 4;
/// Where the text begins within its container: behind the id, the anchor and this offset.
const TEXT_OFFSET: u32 = 20;
/// Where the label begins within its container: behind the id and this offset.
const LABEL_OFFSET: u32 = 12;
const SUCCESS_LEN: usize = 1 + 3 * 8;

/// A notice that a snapshot was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its number.
    pub id: u64,
    /// A name for people; empty for none.
    pub label: String,
}

/// An instruction for the agent, to be written, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its number; 0 for a new one.
    pub id: u64,
    /// Bytes of output before its place; [`u64::MAX`] for the newest.
    pub anchor_byte: u64,
    /// What to do; empty to delete it.
    pub text: String,
}

/// A request to the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A snapshot was taken.
    Snapshot(Snapshot),
    /// An instruction is written, changed or deleted.
    Instruction(Instruction),
}

impl From<Snapshot> for Request {
    fn from(snapshot: Snapshot) -> Self {
        Request::Snapshot(snapshot)
    }
}

impl From<Instruction> for Request {
    fn from(instruction: Instruction) -> Self {
        Request::Instruction(instruction)
    }
}

/// A snapshot or an instruction that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its number, as in the notice, or the one that a new instruction got.
    pub id: u64,
    /// Bytes of output before it.
    pub anchor_byte: u64,
    /// When it was recorded, in nanoseconds since 1970.
    pub ts_ns: u64,
}

/// The recorder's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The snapshot or instruction is on disk.
    Success(Taken),
    /// Why it was not recorded.
    Failure(String),
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The frame is longer than any message may be.
    #[error("a frame of {0} bytes: at most {MAX_FRAME} are allowed")]
    TooLong(u64),
    /// The frame is empty.
    #[error("an empty frame: it has no selector")]
    Empty,
    /// There is no such member of the union.
    #[error("selector {0} is unknown")]
    Selector(u8),
    /// The frame ends too early, or goes on.
    #[error("{found} bytes where {wanted} belong")]
    Length {
        /// The length of the message.
        found: usize,
        /// The length that it should have.
        wanted: usize,
    },
    /// The offset of a label or text is not where that must begin.
    #[error("offset {found} where {wanted} belongs")]
    Offset {
        /// The offset in the message.
        found: u32,
        /// The only one that it can have.
        wanted: u32,
    },
    /// The text is not UTF-8.
    #[error("text that is not UTF-8")]
    Text,
}

/// Returns the length that a frame's head declares.
///
/// # Errors
/// When it is more than [`MAX_FRAME`].
pub fn frame_len(head: [u8; 4]) -> Result<usize, WireError> {
    let len = u32::from_le_bytes(head);
    usize::try_from(len).ok().filter(|n| *n <= MAX_FRAME).ok_or(WireError::TooLong(len.into()))
}

impl Snapshot {
    /// Encodes the whole frame.
    ///
    /// # Errors
    /// When the label is longer than [`MAX_LABEL`].
    pub fn to_frame(&self) -> Result<Vec<u8>, WireError> {
        let mut body = vec![0];
        body.extend_from_slice(&self.id.to_le_bytes());
        body.extend_from_slice(&LABEL_OFFSET.to_le_bytes());
        body.extend_from_slice(self.label.as_bytes());
        frame(&body)
    }

    /// Decodes a frame's bytes, without its length.
    ///
    /// # Errors
    /// When they are no such message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let (selector, rest) = bytes.split_first().ok_or(WireError::Empty)?;
        if *selector != 0 {
            return Err(WireError::Selector(*selector));
        }
        let too_short = WireError::Length { found: bytes.len(), wanted: REQUEST_HEAD };
        let (id, rest) = rest.split_first_chunk().ok_or(too_short)?;
        let label = last_field(rest, LABEL_OFFSET, too_short)?;
        Ok(Self { id: u64::from_le_bytes(*id), label })
    }
}

impl Instruction {
    /// Encodes the whole frame.
    ///
    /// # Errors
    /// When the text does not fit into a frame.
    pub fn to_frame(&self) -> Result<Vec<u8>, WireError> {
        let mut body = vec![1];
        body.extend_from_slice(&self.id.to_le_bytes());
        body.extend_from_slice(&self.anchor_byte.to_le_bytes());
        body.extend_from_slice(&TEXT_OFFSET.to_le_bytes());
        body.extend_from_slice(self.text.as_bytes());
        frame(&body)
    }

    /// Decodes a frame's bytes, without its length.
    ///
    /// # Errors
    /// When they are no such message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let (selector, rest) = bytes.split_first().ok_or(WireError::Empty)?;
        if *selector != 1 {
            return Err(WireError::Selector(*selector));
        }
        let too_short = WireError::Length { found: bytes.len(), wanted: INSTRUCTION_HEAD };
        let (id, rest) = rest.split_first_chunk().ok_or(too_short)?;
        let (anchor, rest) = rest.split_first_chunk().ok_or(too_short)?;
        let text = last_field(rest, TEXT_OFFSET, too_short)?;
        Ok(Self { id: u64::from_le_bytes(*id), anchor_byte: u64::from_le_bytes(*anchor), text })
    }
}

impl Request {
    /// Encodes the whole frame.
    ///
    /// # Errors
    /// When it would be longer than [`MAX_FRAME`].
    pub fn to_frame(&self) -> Result<Vec<u8>, WireError> {
        match self {
            Request::Snapshot(snapshot) => snapshot.to_frame(),
            Request::Instruction(instruction) => instruction.to_frame(),
        }
    }

    /// Decodes a frame's bytes, without its length.
    ///
    /// # Errors
    /// When they are no request.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        match bytes.first() {
            Some(1) => Instruction::from_bytes(bytes).map(Request::Instruction),
            _ => Snapshot::from_bytes(bytes).map(Request::Snapshot),
        }
    }
}

/// The text at the end of a container, behind its offset.
fn last_field(bytes: &[u8], wanted: u32, too_short: WireError) -> Result<String, WireError> {
    let (offset, rest) = bytes.split_first_chunk().ok_or(too_short)?;
    match u32::from_le_bytes(*offset) {
        found if found != wanted => Err(WireError::Offset { found, wanted }),
        _ => text(rest),
    }
}

impl Response {
    /// Encodes the whole frame. A failure's text is cut if it is too long.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Response::Success(taken) => {
                body.push(0);
                for number in [taken.id, taken.anchor_byte, taken.ts_ns] {
                    body.extend_from_slice(&number.to_le_bytes());
                }
            }
            Response::Failure(why) => {
                body.push(1);
                let end = why.floor_char_boundary(MAX_FRAME - 1);
                body.extend_from_slice(&why.as_bytes()[..end]);
            }
        }
        frame(&body).unwrap_or_default()
    }

    /// Decodes a frame's bytes, without its length.
    ///
    /// # Errors
    /// When they are no such message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let (selector, rest) = bytes.split_first().ok_or(WireError::Empty)?;
        match selector {
            0 => {
                let wrong = WireError::Length { found: bytes.len(), wanted: SUCCESS_LEN };
                let (numbers, []) = rest.as_chunks() else { return Err(wrong) };
                let &[id, anchor, ts] = numbers else { return Err(wrong) };
                let [id, anchor_byte, ts_ns] = [id, anchor, ts].map(u64::from_le_bytes);
                Ok(Response::Success(Taken { id, anchor_byte, ts_ns }))
            }
            1 => Ok(Response::Failure(text(rest)?)),
            other => Err(WireError::Selector(*other)),
        }
    }
}

fn frame(body: &[u8]) -> Result<Vec<u8>, WireError> {
    if body.len() > MAX_FRAME {
        return Err(WireError::TooLong(body.len() as u64));
    }
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(body);
    Ok(frame)
}

fn text(bytes: &[u8]) -> Result<String, WireError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| WireError::Text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|c| c.to_digit(16)).map(|d| u8::try_from(d).unwrap()).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// Computed by hand from the SSZ specification; the first is the example in protocols.md.
    #[test]
    fn requests_as_the_protocol_spells_them() {
        for (id, label, bytes) in [
            (42, "cp1", "00 2a00000000000000 0c000000 637031"),
            (0, "", "00 0000000000000000 0c000000"),
            (u64::MAX, "é", "00 ffffffffffffffff 0c000000 c3a9"),
        ] {
            let (snapshot, bytes) = (Snapshot { id, label: label.into() }, hex(bytes));
            let frame = snapshot.to_frame().unwrap();
            assert_eq!(frame[..4], u32::try_from(bytes.len()).unwrap().to_le_bytes());
            assert_eq!(frame[4..], bytes);
            assert_eq!(Snapshot::from_bytes(&bytes), Ok(snapshot));
        }
    }

    /// Computed by hand from the SSZ specification.
    #[test]
    fn instructions_as_the_protocol_spells_them() {
        for (id, anchor_byte, text, bytes) in [
            (0, u64::MAX, "no", "01 0000000000000000 ffffffffffffffff 14000000 6e6f"),
            (42, 0x0102, "", "01 2a00000000000000 0201000000000000 14000000"),
        ] {
            let (instruction, bytes) = (Instruction { id, anchor_byte, text: text.into() }, hex(bytes));
            assert_eq!(instruction.to_frame().unwrap()[4..], bytes);
            assert_eq!(Request::from_bytes(&bytes), Ok(instruction.into()));
        }
    }

    #[test]
    fn responses_as_the_protocol_spells_them() {
        let taken = Taken { id: 42, anchor_byte: 0x0102, ts_ns: 0x17ba_0000_0000_0001 };
        for (response, bytes) in [
            (Response::Success(taken), "00 2a00000000000000 0201000000000000 010000000000ba17"),
            (Response::Failure("no".into()), "01 6e6f"),
            (Response::Failure(String::new()), "01"),
        ] {
            let bytes = hex(bytes);
            assert_eq!(response.to_frame()[4..], bytes);
            assert_eq!(Response::from_bytes(&bytes), Ok(response));
        }
    }

    #[test]
    fn what_is_no_message_is_named() {
        for (bytes, error) in [
            ("", WireError::Empty),
            ("01 2a00000000000000 0c000000", WireError::Selector(1)),
            ("00", WireError::Length { found: 1, wanted: 13 }),
            ("00 2a00000000000000 0c0000", WireError::Length { found: 12, wanted: 13 }),
            ("00 2a00000000000000 0d000000 63", WireError::Offset { found: 13, wanted: 12 }),
            ("00 2a00000000000000 00000000", WireError::Offset { found: 0, wanted: 12 }),
            ("00 2a00000000000000 0c000000 ff", WireError::Text),
        ] {
            assert_eq!(Snapshot::from_bytes(&hex(bytes)), Err(error), "{bytes}");
        }
        let head = "01 2a00000000000000 0201000000000000";
        for (rest, error) in [
            ("", WireError::Length { found: 17, wanted: 21 }),
            ("0c000000 63", WireError::Offset { found: 12, wanted: 20 }),
            ("14000000 ff", WireError::Text),
        ] {
            assert_eq!(Request::from_bytes(&hex(&format!("{head} {rest}"))), Err(error), "{rest}");
        }
        assert_eq!(Request::from_bytes(&[2, 0]), Err(WireError::Selector(2)));
        assert_eq!(Request::from_bytes(&[]), Err(WireError::Empty));
        for (bytes, error) in [
            ("", WireError::Empty),
            ("02", WireError::Selector(2)),
            ("00 2a", WireError::Length { found: 2, wanted: 25 }),
            ("01 ff", WireError::Text),
        ] {
            assert_eq!(Response::from_bytes(&hex(bytes)), Err(error), "{bytes}");
        }
        let long = [&[0][..], &[0; 25]].concat();
        assert_eq!(Response::from_bytes(&long), Err(WireError::Length { found: 26, wanted: 25 }));
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(frame_len(65536u32.to_le_bytes()), Ok(65536));
        assert_eq!(frame_len(65537u32.to_le_bytes()), Err(WireError::TooLong(65537)));
        assert_eq!(frame_len([0xff; 4]), Err(WireError::TooLong(0xffff_ffff)));
        let longest = Snapshot { id: 1, label: "x".repeat(MAX_LABEL) };
        assert_eq!(longest.to_frame().unwrap().len(), 4 + MAX_FRAME);
        let longer = Snapshot { id: 1, label: "x".repeat(MAX_LABEL + 1) };
        assert!(longer.to_frame().is_err());
        let failure = Response::Failure("é".repeat(MAX_FRAME)).to_frame();
        assert!(failure.len() <= 4 + MAX_FRAME);
        assert!(Response::from_bytes(&failure[4..]).is_ok(), "cut between two characters");
    }

    proptest! {
        #[test]
        fn instructions_come_back(id: u64, anchor_byte: u64, text in "\\PC{0,200}") {
            let request = Request::from(Instruction { id, anchor_byte, text });
            prop_assert_eq!(Request::from_bytes(&request.to_frame().unwrap()[4..]), Ok(request));
        }

        #[test]
        fn requests_come_back(id: u64, label in "\\PC{0,200}") {
            let snapshot = Snapshot { id, label };
            let frame = snapshot.to_frame().unwrap();
            prop_assert_eq!(frame_len(frame[..4].try_into().unwrap()), Ok(frame.len() - 4));
            prop_assert_eq!(Snapshot::from_bytes(&frame[4..]), Ok(snapshot));
        }

        #[test]
        fn responses_come_back(id: u64, anchor_byte: u64, ts_ns: u64, why in "\\PC{0,200}") {
            for response in [Response::Success(Taken { id, anchor_byte, ts_ns }), Response::Failure(why)] {
                prop_assert_eq!(Response::from_bytes(&response.to_frame()[4..]), Ok(response));
            }
        }

        /// No bytes panic, and a message that is accepted encodes to the same bytes.
        #[test]
        fn any_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..64), selector in 0u8..3, ours: bool) {
            if ours && let Some(first) = bytes.first_mut() {
                *first = selector;
            }
            if let Ok(request) = Request::from_bytes(&bytes) {
                prop_assert_eq!(&request.to_frame().unwrap()[4..], &bytes[..]);
            }
            if let Ok(response) = Response::from_bytes(&bytes) {
                prop_assert_eq!(&response.to_frame()[4..], &bytes[..]);
            }
        }
    }
}
