//! What a request for a secret looks like on a screen, as data. Each rule has texts that it takes
//! for one, and texts that it does not; both are tests.

use regex::{Regex, RegexBuilder};

/// Characters that programs draw in place of a secret.
pub(super) const MASKS: &str = "*#•●∙⋅▪■◦○⬤✱＊";
/// Longest pattern of a user.
const MAX_PATTERN: usize = 1024;
/// Most patterns of a user.
const MAX_PATTERNS: usize = 100;

/// A rule as it stands in the table.
#[derive(Clone, Copy, Debug)]
pub struct SecretPrompt {
    /// Its name, by which it can be turned off.
    pub name: &'static str,
    /// What it recognizes.
    pub about: &'static str,
    /// A regular expression over the text in front of the cursor.
    pub pattern: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests try each rule on them"))]
    hits: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests try each rule on them"))]
    misses: &'static [&'static str],
}

/// All of them.
pub const SECRET_PROMPTS: &[SecretPrompt] = &[
    SecretPrompt {
        name: "password",
        about: "a word for password and a colon, or the question of a menu",
        pattern: r"(?xi)\b(?:password|passphrase|passcode|passwd)(?:[\s(\[][^:?：]{0,80})?[:?：=]$
            |^(?:\?\ (?:[\w'’-]+\ ){0,4})?(?:password|passphrase|passcode|token|secret|pin|api[\ _-]?key)(?:\ ?[\[(][^\])]{1,20}[\])])?$",
        hits: &[
            "Password:",
            "[sudo] password for ada:",
            "ada@example.org's password:",
            "Enter passphrase for key '/home/ada/.ssh/id_ed25519':",
            "New password (again)?",
            "? Password",
            "? Your master passphrase",
            "Password [hidden] >",
            "Token >",
        ],
        misses: &["passwords:", "The password was changed.", "$ passwd", "Reset password", "password.txt:"],
    },
    SecretPrompt {
        name: "key",
        about: "a word for PIN, token, secret, key or code, and a colon",
        pattern: r"(?x)(?i:\b(?:secret|api[\ _-]?key|(?:[a-z]+[\ _-])?token|otp|totp|cvv|cvc
            |(?:private|secret|access|license|encryption|recovery|master)[\ _-]?(?:access[\ _-]?)?key
            |(?:recovery|seed)\ phrase|(?:one[\ -]time|verification|security|authentication|recovery|access|2fa|mfa)\ code)
            |\bPIN(?:\ code)?)(?i:\ (?:for|of|from)\ [^:?：]{1,60}|\ \([^)]{1,40}\)|\ again)?\s?[:?：=]$",
        hits: &[
            "API key:",
            "Your GitHub access token:",
            "PIN:",
            "PIN for 'YubiKey':",
            "AWS Secret Access Key (hidden):",
            "Client secret:",
            "Verification code:",
            "OTP:",
            "Token?",
            "PIN?",
            "token=",
            "Access code:",
        ],
        misses: &[
            "Max tokens:",
            "token count:",
            "Pin this tab?",
            "secretary:",
            "Press any key:",
            "Postal code:",
            "key:",
        ],
    },
    SecretPrompt {
        name: "request",
        about: "a request to enter, type or paste one of those",
        pattern: r"(?x)(?i)^\W{0,4}(?:please\ )?(?:enter|type|paste|input|provide|supply)\ (?:[\w'’-]+\ ){0,4}
            (?:password|passphrase|passcode|pin|secret|token|api[\ _-]?key|(?:private|secret|access|license|encryption|recovery)\ key
            |(?:recovery|seed)\ phrase|(?:one[\ -]time|verification|security|authentication|2fa|mfa)\ code)\b[^:]{0,60}:?$",
        hits: &[
            "Enter your OpenAI API key",
            "? Paste your token here:",
            "Please enter the passphrase to unlock the vault",
            "Enter PIN for 'YubiKey'",
        ],
        misses: &[
            "Enter your name:",
            "press enter to reset the password",
            "Type a message",
            "Paste the text of the page",
        ],
    },
    SecretPrompt {
        name: "other-languages",
        about: "a word for password in another language, and a colon",
        pattern: r"(?i)(?:kennwort|passwort|mot de passe|contraseña|senha|wachtwoord|hasło|пароль|密码|密碼|口令|パスワード|비밀번호)[^:?：]{0,60}[:?：]$",
        hits: &["Passwort:", "Mot de passe :", "[sudo] Пароль для ada:", "密码："],
        misses: &["Passwort", "kennwortlos"],
    },
];

/// The rules by which a screen asks for a secret.
#[derive(Clone, Debug)]
pub struct SecretPrompts(Vec<Regex>);

impl Default for SecretPrompts {
    fn default() -> Self {
        Self::new(&[] as &[&str], &[] as &[&str]).unwrap_or(Self(Vec::new()))
    }
}

impl SecretPrompts {
    /// The rules of the table but those named in `without`, and the user's own patterns.
    ///
    /// # Errors
    /// When there is no rule of that name, or a pattern is none.
    pub fn new(own: &[impl AsRef<str>], without: &[impl AsRef<str>]) -> Result<Self, String> {
        let known = |name: &str| SECRET_PROMPTS.iter().any(|rule| rule.name == name);
        if let Some(name) = without.iter().map(AsRef::as_ref).find(|name| !known(name)) {
            let names: Vec<&str> = SECRET_PROMPTS.iter().map(|rule| rule.name).collect();
            return Err(format!("there is no rule {name:?}; the rules are {}", names.join(", ")));
        }
        if own.len() > MAX_PATTERNS {
            return Err(format!("more than {MAX_PATTERNS} patterns"));
        }
        let kept =
            SECRET_PROMPTS.iter().filter(|rule| !without.iter().any(|name| name.as_ref() == rule.name));
        let all = kept.map(|rule| rule.pattern).chain(own.iter().map(AsRef::as_ref));
        let built = all.map(|pattern| {
            if pattern.len() > MAX_PATTERN {
                return Err(format!("a pattern is longer than {MAX_PATTERN} bytes"));
            }
            let built = RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|e| {
                let why = e.to_string();
                let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                format!("{pattern:?} is no pattern: {last}")
            })?;
            if built.is_match("") {
                return Err(format!("{pattern:?} matches the empty text"));
            }
            Ok(built)
        });
        Ok(Self(built.collect::<Result<_, _>>()?))
    }

    /// Whether a text in front of a cursor asks for a secret.
    pub fn asks(&self, text: &str) -> bool {
        let text = text.trim_end_matches(|c: char| c.is_whitespace() || DECORATION.contains(c));
        let text = text.trim_start_matches(|c: char| c.is_whitespace() || DECORATION.contains(c));
        !text.is_empty() && self.0.iter().any(|rule| rule.is_match(text))
    }
}

/// What stands around a field: frames, carets, the place of the cursor.
pub(super) const DECORATION: &str = "│┃|║▏▎▌█>❯›»→▸_─━═┌┐└┘╭╮╰╯├┤╔╗╚╝";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_word() {
        for rule in SECRET_PROMPTS {
            let others: Vec<&str> =
                SECRET_PROMPTS.iter().map(|r| r.name).filter(|n| *n != rule.name).collect();
            let alone = SecretPrompts::new(&[] as &[&str], &others).expect("rules");
            for text in rule.hits {
                assert!(alone.asks(text), "{}: {text:?}", rule.name);
                assert!(alone.asks(&format!("│ {text} ▏ ")), "{}: {text:?} in a box", rule.name);
            }
            for text in rule.misses {
                assert!(!alone.asks(text), "{}: {text:?}", rule.name);
            }
        }
        let all = SecretPrompts::default();
        for text in ["$", "ada@host:~/src$", ">>>", "name:", "continue? [y/N]", "", "> ", "-- INSERT --"] {
            assert!(!all.asks(text), "{text:?}");
        }
    }

    #[test]
    fn rules_are_added_and_turned_off() {
        let rules = SecretPrompts::new(&["(?i)magic word:$"], &["password"]).expect("rules");
        assert!(rules.asks("Magic word: ") && !rules.asks("Password:"));
        for (own, without, why) in
            [("a(", "key", "no pattern"), ("x*", "key", "empty"), ("x", "nope", "no rule")]
        {
            let e = SecretPrompts::new(&[own], &[without]).expect_err("refused");
            assert!(e.contains(why), "{e}");
        }
    }
}
