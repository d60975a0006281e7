//! MessagePack, as much of it as the broker's messages need, read from strangers: nothing is allocated for a length that
//! the bytes at hand do not cover, and nothing is nested deeper than a message ever is.

/// Deeper than any message.
const DEPTH: u8 = 16;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// Yes or no.
    Bool(bool),
    /// A whole number that is not negative.
    Uint(u64),
    /// A negative one.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes.
    Bin(Vec<u8>),
    /// Several.
    Array(Vec<Value>),
    /// Several by name.
    Map(Vec<(String, Value)>),
}

/// Bytes that are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no MessagePack at byte {at}: {why}")]
pub struct Malformed {
    /// Where.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

impl Value {
    /// The value of this name, of a map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(fields) => fields.iter().find(|(k, _)| k == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Text.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::Str(s) = self { Some(s) } else { None }
    }

    /// A whole number.
    pub fn as_u64(&self) -> Option<u64> {
        if let Value::Uint(n) = self { Some(*n) } else { None }
    }

    /// Yes or no.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(b) = self { Some(*b) } else { None }
    }

    /// Bytes, or text as bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bin(b) => Some(b),
            Value::Str(s) => Some(s.as_bytes()),
            _ => None,
        }
    }

    /// The value as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self);
        out
    }

    /// Reads exactly one value.
    ///
    /// # Errors
    /// When the bytes are something else, or more.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { bytes, at: 0 };
        let value = reader.value(0)?;
        if reader.at == bytes.len() { Ok(value) } else { Err(reader.wrong("more than one value")) }
    }
}

/// A map of these fields.
pub fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Map(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Value::Str(s.to_owned())
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Uint(n)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

fn put(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.push(0xc0),
        Value::Bool(b) => out.push(if *b { 0xc3 } else { 0xc2 }),
        Value::Uint(n) => match *n {
            0..=0x7f => out.push(*n as u8),
            0x80..=0xff => out.extend_from_slice(&[0xcc, *n as u8]),
            0x100..=0xffff => {
                out.push(0xcd);
                out.extend_from_slice(&(*n as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                out.push(0xce);
                out.extend_from_slice(&(*n as u32).to_be_bytes());
            }
            _ => {
                out.push(0xcf);
                out.extend_from_slice(&n.to_be_bytes());
            }
        },
        Value::Int(n) => {
            out.push(0xd3);
            out.extend_from_slice(&n.to_be_bytes());
        }
        Value::Float(f) => {
            out.push(0xcb);
            out.extend_from_slice(&f.to_be_bytes());
        }
        Value::Str(s) => {
            length(out, s.len(), [Some((0xa0, 32)), Some((0xd9, 0)), Some((0xda, 0)), Some((0xdb, 0))]);
            out.extend_from_slice(s.as_bytes());
        }
        Value::Bin(b) => {
            length(out, b.len(), [None, Some((0xc4, 0)), Some((0xc5, 0)), Some((0xc6, 0))]);
            out.extend_from_slice(b);
        }
        Value::Array(items) => {
            length(out, items.len(), [Some((0x90, 16)), None, Some((0xdc, 0)), Some((0xdd, 0))]);
            items.iter().for_each(|item| put(out, item));
        }
        Value::Map(fields) => {
            length(out, fields.len(), [Some((0x80, 16)), None, Some((0xde, 0)), Some((0xdf, 0))]);
            for (key, value) in fields {
                put(out, &Value::Str(key.clone()));
                put(out, value);
            }
        }
    }
}

/// A length, in the shortest form there is: in the tag itself, or in one, two or four bytes behind it.
fn length(out: &mut Vec<u8>, len: usize, forms: [Option<(u8, usize)>; 4]) {
    match forms {
        [Some((tag, below)), ..] if len < below => out.push(tag | len as u8),
        [_, Some((tag, _)), ..] if len <= 0xff => out.extend_from_slice(&[tag, len as u8]),
        [_, _, Some((tag, _)), _] if len <= 0xffff => {
            out.push(tag);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        [.., form] => {
            out.push(form.map_or(0xc6, |(tag, _)| tag));
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self, why: &'static str) -> Malformed {
        Malformed { at: self.at, why }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.wrong("it ends too early"))?;
        let piece = &self.bytes[self.at..end];
        self.at = end;
        Ok(piece)
    }

    fn number(&mut self, n: usize) -> Result<u64, Malformed> {
        Ok(self.take(n)?.iter().fold(0, |all, b| all << 8 | u64::from(*b)))
    }

    fn size(&mut self, n: usize) -> Result<usize, Malformed> {
        let size = self.number(n)?;
        usize::try_from(size).map_err(|_| self.wrong("too long"))
    }

    fn signed(&mut self, n: usize) -> Result<Value, Malformed> {
        let raw = self.number(n)?;
        let shift = 64 - 8 * n as u32;
        let value = (raw << shift).cast_signed() >> shift;
        Ok(u64::try_from(value).map_or(Value::Int(value), Value::Uint))
    }

    fn text(&mut self, len: usize) -> Result<String, Malformed> {
        let at = self.at;
        let bytes = self.take(len)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Malformed { at, why: "text that is not UTF-8" })
    }

    fn value(&mut self, depth: u8) -> Result<Value, Malformed> {
        if depth > DEPTH {
            return Err(self.wrong("nested too deep"));
        }
        let tag = self.take(1)?[0];
        Ok(match tag {
            0..=0x7f => Value::Uint(u64::from(tag)),
            0x80..=0x8f => self.map(usize::from(tag & 0x0f), depth)?,
            0x90..=0x9f => self.array(usize::from(tag & 0x0f), depth)?,
            0xa0..=0xbf => Value::Str(self.text(usize::from(tag & 0x1f))?),
            0xc0 => Value::Nil,
            0xc2 => Value::Bool(false),
            0xc3 => Value::Bool(true),
            0xc4..=0xc6 => {
                let len = self.size(1 << (tag - 0xc4))?;
                Value::Bin(self.take(len)?.to_vec())
            }
            0xca => Value::Float(f64::from(f32::from_bits(self.number(4)? as u32))),
            0xcb => Value::Float(f64::from_bits(self.number(8)?)),
            0xcc..=0xcf => Value::Uint(self.number(1 << (tag - 0xcc))?),
            0xd0..=0xd3 => self.signed(1 << (tag - 0xd0))?,
            0xd9..=0xdb => {
                let len = self.size(1 << (tag - 0xd9))?;
                Value::Str(self.text(len)?)
            }
            0xdc | 0xdd => {
                let len = self.size(if tag == 0xdc { 2 } else { 4 })?;
                self.array(len, depth)?
            }
            0xde | 0xdf => {
                let len = self.size(if tag == 0xde { 2 } else { 4 })?;
                self.map(len, depth)?
            }
            0xe0..=0xff => Value::Int(i64::from(tag.cast_signed())),
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => {
                self.at -= 1;
                return Err(self.wrong("a kind of value that no message has"));
            }
        })
    }

    /// Every item takes a byte at least, so a count beyond what is left is a lie.
    fn fits(&self, count: usize) -> Result<(), Malformed> {
        if count > self.bytes.len() - self.at { Err(self.wrong("it ends too early")) } else { Ok(()) }
    }

    fn array(&mut self, len: usize, depth: u8) -> Result<Value, Malformed> {
        self.fits(len)?;
        let items = (0..len).map(|_| self.value(depth + 1)).collect::<Result<Vec<_>, _>>()?;
        Ok(Value::Array(items))
    }

    fn map(&mut self, len: usize, depth: u8) -> Result<Value, Malformed> {
        self.fits(len)?;
        let mut fields = Vec::new();
        for _ in 0..len {
            let at = self.at;
            let Value::Str(key) = self.value(depth + 1)? else {
                return Err(Malformed { at, why: "a name that is no text" });
            };
            fields.push((key, self.value(depth + 1)?));
        }
        Ok(Value::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::Bool),
            any::<u64>().prop_map(Value::Uint),
            (i64::MIN..0).prop_map(Value::Int),
            (0u64..300).prop_map(Value::Uint),
            ".{0,40}".prop_map(Value::Str),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bin),
        ];
        leaf.prop_recursive(3, 40, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
                prop::collection::vec((".{0,8}", inner), 0..20).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_cut_short_is_refused(value in any_value(), cut in any::<prop::sample::Index>()) {
            let bytes = value.encode();
            prop_assert_eq!(Value::decode(&bytes), Ok(value));
            prop_assert!(Value::decode(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Value::decode(&bytes);
        }
    }

    #[test]
    fn lies_about_lengths_cost_nothing() {
        for bytes in [
            &b"\xdd\xff\xff\xff\xff"[..],
            b"\xdf\xff\xff\xff\xff",
            b"\xc6\xff\xff\xff\xff",
            b"\xdb\x7f\xff\xff\xff",
            b"\xc1",
        ] {
            assert!(Value::decode(bytes).is_err());
        }
        assert!(Value::decode(&[0x91; 100]).is_err(), "nested too deep");
    }
}
