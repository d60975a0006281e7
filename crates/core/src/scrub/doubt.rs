//! What stands behind a name like `password` and is no secret all the same: a piece of source code,
//! or a word that only keeps the place of one.

/// Words that are written where a secret would be.
const STAND_INS: &[&str] = &[
    "boolean",
    "changeit",
    "changeme",
    "credentials",
    "default",
    "disabled",
    "enabled",
    "example",
    "hidden",
    "number",
    "object",
    "optional",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "placeholder",
    "process",
    "redacted",
    "request",
    "required",
    "response",
    "secret",
    "string",
    "undefined",
    "unknown",
];
/// What names of variables for secrets have in them.
const NAMES: &[&str] = &["password", "passwd", "token", "secret", "key", "credential", "passphrase"];
/// Letters that a word of a name has on average; a random text changes between letters, digits and
/// cases sooner.
const WORD: usize = 3;

/// Whether a text behind the name of a secret is code or a stand-in. `rest` is what follows it on
/// the line.
pub(super) fn is_no_secret(text: &[u8], rest: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let first = text.chars().next().unwrap_or(' ');
    let lower = text.to_ascii_lowercase();
    let yours = lower.starts_with("your_") || lower.starts_with("your-");
    if yours || text.chars().all(|c| c == first) || STAND_INS.contains(&lower.as_str()) {
        return true;
    }
    let name = |part: &str| {
        !part.starts_with(|c: char| c.is_ascii_digit())
            && !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))
    };
    if text.split("::").flat_map(|p| p.split('.')).all(name) {
        // `secret = load(`, `SOME_TOKEN: some_type_5 = 7;`
        let called = matches!(rest.first(), Some(b'(' | b'[' | b'{' | b'<'));
        let typed = rest.trim_ascii_start().starts_with(b"=");
        // `password=self.password,` and `token=access_token)`, but not at the end of a line or in
        // quotes.
        let passed = matches!(rest.first(), Some(b',' | b';' | b')' | b']' | b'}'));
        let of_parts = text.contains('.') || text.contains("::");
        let of_names = NAMES.iter().any(|n| lower.contains(n)) && !text.bytes().any(|b| b.is_ascii_digit());
        let of_words = text.contains('_') || text.bytes().any(|b| b.is_ascii_uppercase());
        let variable = !first.is_ascii_uppercase() && of_names && of_words;
        return (called || typed || (passed && (of_parts || variable))) && is_wordy(text);
    }
    // The path of the file that it is in.
    let file = ["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start));
    let of_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~');
    file && text.chars().all(of_path) && is_wordy(text)
}

/// Whether a text is made of words rather than of characters drawn at random.
fn is_wordy(text: &str) -> bool {
    let (mut letters, mut words) = (0, 0);
    let mut before = b' ';
    for b in text.bytes() {
        if b.is_ascii_alphabetic() {
            letters += 1;
            let within = before.is_ascii_alphabetic()
                && (before.is_ascii_lowercase() == b.is_ascii_lowercase() || before.is_ascii_uppercase());
            words += usize::from(!within);
        }
        before = b;
    }
    words > 0 && letters >= words * WORD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_stand_ins_are_told_from_secrets() {
        for (text, rest) in [
            ("self.key_password", ","),
            ("node.colon2_token", ","),
            ("base64.b16encode", "("),
            ("load_secret", "("),
            ("lexer::Token", ";"),
            ("_bindgen_ty_5", " = 7;"),
            ("access_token", ")"),
            ("userPassword", ", x"),
            ("password", ""),
            ("xxxxxxxx", ""),
            ("your-token-here", ""),
            ("/run/secrets/db_password", ""),
            ("./token.txt", ""),
        ] {
            assert!(is_no_secret(text.as_bytes(), rest.as_bytes()), "{text}");
        }
        for (text, rest) in [
            ("correcthorse", ""),
            ("correct.horse", ""),
            ("correct.horse", "\""),
            ("my_secret_password", ""),
            ("My_Secret_Password", ","),
            ("hunter22", ""),
            ("yourmother1", ""),
            ("s3cr3t-value!", ""),
            ("ab12cd34", "("),
            ("a1b2c3.d4e5f6", ""),
            ("MTk4NjIyNDgz.Cl2FMQ.ZnCjm1XVW7vRze4b", ""),
            ("wJalrXUtnFEMI/K7MDENG", ""),
            ("/Jk3dH/9sQx+ab", ""),
        ] {
            assert!(!is_no_secret(text.as_bytes(), rest.as_bytes()), "{text}");
        }
    }
}
