//! Dialogs of real programs, as they stood on the screen.

use tapdeck_term::{Settings, Size, Term};

use super::*;
use crate::time::Stamp;

const CLAUDE: &str = "\
❯ Please write the note

● Write(note.txt)

────────────────────────────────────────────────────────────────────────────────
 Create file
 note.txt
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
  1 remember the milk
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to create note.txt?
 ❯ 1. Yes
   2. Yes, and switch to accept edits (auto-approve file edits and common file
      commands) for this session (shift+tab)
   3. No

 Esc to cancel · Tab to amend";

const TRUST: &str = "\
────────────────────────────────────────────────────────────────────────────────
 Accessing workspace:

 Quick safety check: Is this a project you created or one you trust? (Like your
 own code, a well-known open source project, or work from your team).

 Security guide

 ❯ No, exit
   Yes, I trust this folder

 Enter to confirm · Esc to cancel";

const CODEX: &str = "\
› Please write the note

• Running echo remember the milk > note.txt

  Would you like to run the following command?

  Reason: Shall the note be written?

  $ echo remember the milk > note.txt


› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with `echo remember the
     milk > note.txt` (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel";

const MODELS: &str = "\
  Select Model and Effort


  1. GPT-6.1-Sol    Latest workhorse model for coding and everyday work.
› 2. GPT-6-Astra    Frontier intelligence for the most demanding work.
  3. GPT-6-Sol      Previous generation workhorse model.
↓
  enter select · esc back";

const GEMINI: &str = "\
╭──────────────────────────────────────────────────────────────────────────────╮
│ ?  Shell rm note.txt                                                         │
│                                                                              │
│ rm note.txt                                                                  │
│ Allow execution of: 'rm'?                                                    │
│                                                                              │
│ ● 1. Yes, allow once                                                         │
│   2. Yes, allow always ...                                                   │
│   3. No, suggest changes (esc)                                               │
│                                                                              │
╰──────────────────────────────────────────────────────────────────────────────╯";

fn show(screen: &str) -> Term {
    let mut term = Term::new(Size { cols: 80, rows: 24 }, Settings::default());
    term.feed(screen.replace('\n', "\r\n").as_bytes());
    term
}

fn blocked(evidence: Evidence) -> Judgement {
    Judgement { state: AgentState::Blocked, evidence, ..Judgement::unknown(Stamp::default()) }
}

#[track_caller]
fn menu(screen: &str) -> Dialog {
    Dialog::read(&show(screen), &blocked(Evidence::Screen)).expect("a menu")
}

#[track_caller]
fn line(screen: &str) -> Dialog {
    Dialog::read(&show(screen), &blocked(Evidence::Prompt)).expect("a question")
}

fn labels(dialog: &Dialog) -> Vec<(u32, &str, bool)> {
    dialog.options.iter().map(|o| (o.number, o.label.as_str(), o.marked)).collect()
}

#[test]
fn menus_are_read_from_the_screen() {
    let claude = menu(CLAUDE);
    assert_eq!(claude.question, "Do you want to create note.txt?");
    let detail = ["Create file", "note.txt", " 1 remember the milk", "Do you want to create note.txt?"];
    assert_eq!(claude.detail, detail);
    let wide = "Yes, and switch to accept edits (auto-approve file edits and common file commands) for \
                this session (shift+tab)";
    assert_eq!(labels(&claude), [(1, "Yes", true), (2, wide, false), (3, "No", false)]);

    let trust = menu(TRUST);
    assert_eq!(trust.question, "Quick safety check: Is this a project you created or one you trust?");
    assert_eq!(labels(&trust), [(1, "No, exit", true), (2, "Yes, I trust this folder", false)]);

    let codex = menu(CODEX);
    assert_eq!(codex.question, "Would you like to run the following command?");
    assert_eq!(codex.detail[0], "Would you like to run the following command?");
    assert_eq!(codex.detail.last().map(String::as_str), Some("$ echo remember the milk > note.txt"));
    assert_eq!(codex.options.len(), 3);
    assert_eq!(codex.options[2].label, "No, and tell Codex what to do differently (esc)");

    let models = menu(MODELS);
    assert_eq!(models.question, "Select Model and Effort");
    assert_eq!((models.options.len(), models.marked()), (3, Some(1)));

    let gemini = menu(GEMINI);
    assert_eq!(gemini.question, "Allow execution of: 'rm'?");
    let wanted = [(1, "Yes, allow once", true), (2, "Yes, allow always ...", false)];
    assert_eq!(labels(&gemini)[..2], wanted);
    assert_eq!(gemini.options[2].label, "No, suggest changes (esc)");
}

#[test]
fn keys_in_one_row_are_options() {
    let screen = " > Please write it\n\n ⠦ Thinking... (esc to cancel)\n\n\n Cline needs permission\n\n \
                  Approve tool call?\n\n editor\n\n   /tmp/a.txt\n\n  [y] Approve   [n] Deny\n\n model";
    let cline = menu(screen);
    assert_eq!(cline.question, "Approve tool call?");
    assert_eq!(labels(&cline), [(1, "Approve", false), (2, "Deny", false)]);
    assert_eq!((cline.digit(0), cline.digit(1)), (Some('y'), Some('n')));
    assert_eq!(cline.choose(&Choice::Yes), Ok(Reply::Option(0)));
    assert_eq!(cline.choose(&Choice::No), Ok(Reply::Option(1)));
}

#[test]
fn questions_on_the_line_of_the_cursor_are_read() {
    let aider = line("echo hi\r\nRun shell command? (Y)es/(N)o/(D)on't ask again [Yes]: ");
    assert_eq!(labels(&aider), [(1, "Yes", true), (2, "No", false), (3, "Don't ask again", false)]);
    assert_eq!(aider.detail, ["echo hi"]);
    assert_eq!(aider.choose(&Choice::Yes), Ok(Reply::Line("y".into())));
    assert_eq!(aider.choose(&Choice::Label("d".into())), Ok(Reply::Line("d".into())));

    let apt = line("Do you want to continue? [Y/n] ");
    assert_eq!(labels(&apt), [(1, "Y", true), (2, "n", false)]);
    assert_eq!(apt.choose(&Choice::No), Ok(Reply::Line("n".into())));
    assert_eq!(apt.choose(&Choice::Text("maybe".into())), Err(NoChoice::NoText));

    let ssh = line("Are you sure you want to continue connecting (yes/no/[fingerprint])? ");
    assert_eq!(ssh.choose(&Choice::Yes), Ok(Reply::Line("yes".into())));
    assert_eq!(ssh.choose(&Choice::Label("SHA256:x".into())), Ok(Reply::Line("SHA256:x".into())));

    let password = line("[sudo] password for me: ");
    assert!(password.is_secret() && password.takes_text());
    assert_eq!(password.choose(&Choice::Text("yes".into())), Ok(Reply::Line("yes".into())));
    assert!(password.choose(&Choice::Yes).is_err(), "a password is not a question of yes or no");

    let key = line("Press any key to continue");
    assert_eq!(key.choose(&Choice::Yes), Ok(Reply::Enter));
}

#[test]
fn consent_is_to_this_once_and_refusal_is_found() {
    // An option that names Escape is chosen with it.
    let cases = [
        (CLAUDE, 0, Reply::Option(2)),
        (TRUST, 1, Reply::Option(0)),
        (CODEX, 0, Reply::Escape),
        (GEMINI, 0, Reply::Escape),
    ];
    for (screen, yes, no) in cases.map(|(screen, yes, no)| (menu(screen), yes, no)) {
        assert_eq!(screen.choose(&Choice::Yes), Ok(Reply::Option(yes)), "{screen:?}");
        assert_eq!(screen.choose(&Choice::No), Ok(no), "{screen:?}");
    }
    let only = menu("Proceed?\n❯ 1. Yes, and don’t ask again\n  2. Later\n\nEsc to cancel");
    assert_eq!(only.choose(&Choice::Yes), Err(NoChoice::None("yes".into())));
    assert_eq!(only.choose(&Choice::No), Ok(Reply::Escape));
    let models = menu(MODELS);
    assert_eq!(models.choose(&Choice::Number(3)), Ok(Reply::Option(2)));
    assert_eq!(models.choose(&Choice::Number(9)), Err(NoChoice::Number(9)));
    assert_eq!(models.choose(&Choice::Label("astra".into())), Ok(Reply::Option(1)));
    assert!(matches!(models.choose(&Choice::Label("sol".into())), Err(NoChoice::Several { .. })));
}

#[test]
fn a_field_takes_text_and_a_panel_only_escape() {
    let asks = "\
❯ ask me
────────────────────────────────────────────────────────────────────────────────
 ☐ Database

Which database should be used?

❯ 1. Postgres
     A server
  2. SQLite
     A file
  3. Type something.
────────────────────────────────────────────────────────────────────────────────
  4. Chat about this

Enter to select · ↑/↓ to navigate · Esc to cancel";
    let dialog = menu(asks);
    assert_eq!(dialog.question, "Which database should be used?");
    assert_eq!(dialog.options.iter().map(|o| o.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(dialog.choose(&Choice::Label("sqlite".into())), Ok(Reply::Option(1)));
    assert_eq!(dialog.choose(&Choice::Label("MySQL".into())), Ok(Reply::Field(2, "MySQL".into())));
    assert_eq!(dialog.choose(&Choice::Number(3)), Err(NoChoice::Field(3)));
    let typed = dialog.again(&show(&asks.replace("Type something.", "MySQL"))).expect("the same dialog");
    assert!(typed.shows(2, "MySQL") && !dialog.shows(2, "MySQL"));

    let panel = menu("▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔\n   Status\n   Version: 2\n\n   Esc to cancel");
    assert_eq!((panel.question.as_str(), panel.options.len()), ("Status", 0));
    assert_eq!(panel.choose(&Choice::No), Ok(Reply::Escape));
    assert_eq!(panel.choose(&Choice::Yes), Err(NoChoice::None("yes".into())));
}

/// A question of Claude Code that takes several answers.
const BOXES: &str = "\
❯ choose multi
────────────────────────────────────────────────────────────────────────────────
←  ☐ Color  ✔ Submit  →

Which color?

❯ 1. [ ] Red
         r
  2. [ ] Blue
         b
  3. [ ] Type something
     Submit
────────────────────────────────────────────────────────────────────────────────
  4. Chat about this

Enter to select · ↑/↓ to navigate · Esc to cancel";

#[test]
fn check_boxes_are_sent_off_by_an_option_of_their_own() {
    let form = menu(BOXES);
    let wanted = [
        (1, "[ ] Red r", true),
        (2, "[ ] Blue b", false),
        (3, "[ ] Type something", false),
        (5, "Submit", false),
        (4, "Chat about this", false),
    ];
    assert_eq!(labels(&form), wanted);
    let boxes: Vec<_> = form.options.iter().map(|o| o.checked).collect();
    assert_eq!(boxes, [Some(false), Some(false), Some(false), None, None]);
    assert_eq!(form.choose(&Choice::Label("Submit".into())), Ok(Reply::Option(3)));
    assert_eq!(form.choose(&Choice::Label("blue".into())), Ok(Reply::Option(1)));
    assert_eq!(form.choose(&Choice::Label("my own".into())), Ok(Reply::Field(2, "my own".into())));
    assert!(form.choose(&Choice::Yes).is_err(), "nothing has been checked");
    assert_eq!((form.digit(1), form.digit(2), form.digit(3)), (Some('2'), None, None));

    let checked = BOXES.replace("2. [ ]", "2. [✔]").replace("☐ Color", "☒ Color");
    let again = form.again(&show(&checked)).expect("the same form");
    assert_eq!(again.options[1].checked, Some(true));
    let typed = checked.replace("3. [ ] Type something", "3. [✔] my own");
    let again = form.again(&show(&typed)).expect("the same form");
    assert!(again.shows(2, "my own"));
    let at_submit = checked.replace("❯ 1.", "  1.").replace("     Submit", "❯    Submit");
    let again = form.again(&show(&at_submit)).expect("the same form");
    assert_eq!(again.marked(), Some(3));

    let review = menu(
        "Review your answers\n\n ● Which color?\n   → Blue\n\nReady to submit your answers?\n\n\
                       ❯ 1. Submit answers\n  2. Cancel",
    );
    assert_eq!(review.question, "Ready to submit your answers?");
    assert_eq!(review.choose(&Choice::Yes), Ok(Reply::Option(0)));
    assert_eq!(review.choose(&Choice::No), Ok(Reply::Option(1)));
}

#[test]
fn a_menu_is_told_from_what_stands_around_it() {
    let codex = menu(&format!(
        "› hello\n\n\n• An answer\n\n  Worked for <1s • 16:35\n\n\n{}",
        MODELS.replace("  Select Model and Effort\n\n\n", "  Select Model and Effort\n\n↑\n")
    ));
    assert_eq!((codex.question.as_str(), codex.detail.len()), ("Select Model and Effort", 1));

    let claude = menu(
        "▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔ ◐ medium · /effort ▔\n   Select model\n   \
         Switch between Claude models.\n\n   ❯ 1. Default (recommended) ✔  Use the default model\n     \
         2. Opus                     Opus 5.5\n   ↓ 3. Fable                    Fable 5.2 · Most\n\
         \x20                                capable\n      … +2 models\n\n   Enter to set as default · Esc to cancel",
    );
    assert_eq!(claude.options.last().map(|o| o.label.as_str()), Some("Fable Fable 5.2 · Most capable"));

    let wrapped = menu(
        "────────────────────\n Which of the many databases should be used for the\n new service?\n\n\
                        ❯ 1. Postgres\n   2. SQLite\n\n Esc to cancel",
    );
    assert_eq!(wrapped.question, "Which of the many databases should be used for the new service?");

    let help =
        menu("❯ /help\n▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔ ◐ medium · /effort ▔\n   Help  General   Commands\n\n   More help");
    assert_eq!((help.question.as_str(), help.options.len()), ("Help General Commands", 0));
    assert_eq!(help.choose(&Choice::No), Ok(Reply::Escape));
}

#[test]
fn a_dialog_is_known_again_and_no_other_is_taken_for_it() {
    let claude = menu(CLAUDE);
    assert_eq!(claude.again(&show(CLAUDE)).as_ref(), Some(&claude));
    let moved = CLAUDE.replace("❯ 1. Yes", "  1. Yes").replace("  3. No", "❯ 3. No");
    assert_eq!(claude.again(&show(&moved)).and_then(|d| d.marked()), Some(2));
    assert_eq!(claude.again(&show(&CLAUDE.replace("note.txt", "other.txt"))), None);
    assert_eq!(claude.again(&show("❯ \n")), None);
    let apt = line("Do you want to continue? [Y/n] ");
    assert!(apt.again(&show("Do you want to continue? [Y/n] y")).is_some());
    assert_eq!(apt.again(&show("Do you want to continue? [Y/n] y\nDo you want to continue? [Y/n] ")), None);
}

#[test]
fn a_program_that_is_not_blocked_asks_nothing() {
    let idle = Judgement { state: AgentState::Idle, ..blocked(Evidence::Screen) };
    assert_eq!(Dialog::read(&show(CLAUDE), &idle), None);
    assert_eq!(Dialog::read(&show("usage limit reached"), &blocked(Evidence::Screen)), None);
}
