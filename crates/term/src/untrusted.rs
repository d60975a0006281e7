//! Text and links from programs, peers and files, which must not act where they are shown.
//!
//! Every view, export and message of the product asks here, so that there is one list.

/// Longest address of a link, as in other terminals.
const MAX_URI: usize = 2083;
/// Schemes of links that may be followed. Others open files or start programs of the user that
/// follows them.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Whether a character does something other than show itself: control a terminal, change the order
/// in which text is shown, break a line, or hide.
pub fn is_unsafe(c: char) -> bool {
    match c {
        ' '..='~' => false,
        '\u{61c}' | '\u{180e}' => true,
        // Spaces without width, directions, line separators. The joiners at U+200C and U+200D are
        // part of ordinary words and pictures.
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Whether a text has no unsafe character.
pub fn is_printable(text: &str) -> bool {
    // Nearly all text is plain, and plain text is told apart many bytes at a time.
    text.bytes().fold(true, |plain, b| plain & (0x20..0x7f).contains(&b)) || !text.chars().any(is_unsafe)
}

/// Text with each unsafe character replaced by U+FFFD.
pub fn printable(text: &str) -> String {
    if is_printable(text) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_unsafe(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns [`printable`] text in which tabs and the ends of lines stay.
pub fn printable_lines(text: &str) -> String {
    let pieces = text.split_inclusive(['\n', '\t']).map(|piece| {
        let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
        printable(&piece[..end]) + &piece[end..]
    });
    pieces.collect()
}

/// JSON of the same meaning in which nothing can act: the format itself escapes only some control
/// characters.
pub fn printable_json(json: String) -> String {
    if is_printable(&json) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match is_unsafe(c) {
            true => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => out.push(c),
        }
    }
    out
}

/// Whether a link may be offered: to the web or to a mailbox, of bounded length, without unsafe
/// characters and spaces.
pub fn is_safe_link(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    uri.len() <= MAX_URI
        && SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme))
        && is_printable(uri)
        && !uri.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_act() {
        assert_eq!(printable("a\x1b[31m\u{9b}\u{202e}é\nb"), "a\u{fffd}[31m\u{fffd}\u{fffd}é\u{fffd}b");
        assert_eq!(printable_lines("a\t\n\r\u{2028}b\n"), "a\t\n\u{fffd}\u{fffd}b\n");
        for c in ['\u{200b}', '\u{feff}', '\u{e0041}', '\u{2066}', '\u{7f}', '\u{85}'] {
            assert!(is_unsafe(c), "{c:?}");
        }
        let ordinary = "naïve 漢字 עברית می\u{200c}خواهم 👩\u{200d}💻 ❤\u{fe0f} e\u{301} ~";
        assert_eq!(printable(ordinary), ordinary);
    }

    #[test]
    fn links_are_judged_by_their_scheme() {
        for uri in ["http://x", "HTTPS://é.example/?a=b&c#d", "mailto:a@b.c"] {
            assert!(is_safe_link(uri), "{uri}");
        }
        let long = format!("https://{}", "x".repeat(MAX_URI));
        for uri in [
            "",
            "x",
            "//x",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            " http://x",
            "java\nscript:x",
            "file:///etc/passwd",
            "data:text/html,x",
            "vscode://file/x",
            "ftp://x",
            "https://a b",
            "https://\u{202e}x",
            "https://x\u{7f}",
            &long,
        ] {
            assert!(!is_safe_link(uri), "{uri}");
        }
    }
}
