//! The page: its access control, and what a person in a real browser sees and does.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::browser::{Browser, CONTROL, ENTER, SHELL, SHIFT, Session, Web, http};
use crate::support::{Home, eventually};

const TAB: &str = "\u{e004}";

/// Each row: what is asked, with which headers, and the status that must come. Tokens in place of
/// `TOKEN`, the port in place of `PORT`.
#[test]
fn only_our_own_page_with_a_credential_gets_in() {
    let home = Home::new();
    let session = Session::start(&home, "shell", &SHELL);
    let mut web = Web::start(&home, &["--host", "deck.example"]);
    const WS: &str = "Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Version: 13|Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let own = "Host: 127.0.0.1:PORT";
    let origin = "Origin: http://127.0.0.1:PORT";
    let bearer = "Authorization: Bearer TOKEN";
    let json = "Content-Type: application/json";
    let right = r#"{"token":"TOKEN"}"#;
    let live = format!("/ws/session/{}", session.id);
    let cases: Vec<(&str, &str, String, &str, u16)> = vec![
        ("GET", "/", own.into(), "", 200),
        ("GET", "/", "Host: localhost:PORT".into(), "", 200),
        ("GET", "/page/app.js", own.into(), "", 200),
        ("GET", "/page/../mod.rs", own.into(), "", 404),
        // Names that are not ours: a page elsewhere that had its name point here.
        ("GET", "/", "Host: evil.example".into(), "", 403),
        ("GET", "/", "Host: evil.example:PORT".into(), "", 403),
        ("GET", "/", format!("{own}|Host: evil.example"), "", 403),
        ("GET", "/", "X: y".into(), "", 403),
        // A proxy in front, which speaks TLS or not.
        ("GET", "/login", format!("Host: deck.example|Origin: https://deck.example|{bearer}"), "", 200),
        ("GET", "/login", format!("{own}|Origin: https://deck.example|{bearer}"), "", 200),
        ("GET", "/login", format!("{own}|Origin: http://deck.example|{bearer}"), "", 200),
        ("GET", "/login", format!("{own}|Origin: https://deck.example:8443|{bearer}"), "", 403),
        // Other pages.
        ("GET", "/login", format!("{own}|Origin: http://evil.example|{bearer}"), "", 403),
        ("POST", "/login", format!("{own}|Origin: null|{json}"), right, 403),
        ("POST", "/login", format!("{own}|Origin: https://127.0.0.1:PORT|{json}"), right, 403),
        ("POST", "/login", format!("{own}|{json}"), right, 403),
        // Without a credential, or with a wrong one.
        ("POST", "/login", format!("{own}|{origin}|{json}"), r#"{"token":"wrong"}"#, 403),
        ("POST", "/login", format!("{own}|{origin}|{json}"), "{", 400),
        ("POST", "/login", format!("{own}|{origin}|Content-Type: text/plain"), right, 415),
        ("GET", "/login", own.into(), "", 401),
        ("GET", "/login", format!("{own}|Cookie: tapdeck-PORT=guess"), "", 401),
        ("GET", "/login", format!("{own}|Authorization: Bearer guess"), "", 401),
        ("GET", "/login?token=TOKEN", own.into(), "", 401),
        ("GET", &live, format!("{own}|{origin}|{WS}"), "", 401),
        ("GET", "/ws/list", format!("{own}|{origin}|{WS}"), "", 401),
        ("GET", &live, format!("{own}|{WS}"), "", 403),
        ("GET", &live, format!("{own}|Origin: http://evil.example|{bearer}|{WS}"), "", 403),
        ("GET", "/ws/session/no-such", format!("{own}|{bearer}|{WS}"), "", 404),
        // A plain request is told why a socket would be refused.
        ("GET", "/ws/session/no-such", format!("{own}|{bearer}"), "", 404),
        ("GET", "/ws/play/no-such.ahr", format!("{own}|{bearer}"), "", 404),
        ("GET", &live, own.into(), "", 401),
        ("GET", "/ws/list", own.into(), "", 401),
        ("GET", &live, format!("{own}|{bearer}"), "", 204),
        ("GET", "/ws/alis", own.into(), "", 401),
        ("GET", "/ws/alis", format!("{own}|{bearer}"), "", 204),
        ("GET", "/ws/alis/no-such", format!("{own}|{bearer}"), "", 404),
        ("GET", "/ws/tty", format!("{own}|{bearer}"), "", 404),
        // Clients with access.
        ("GET", "/login", format!("{own}|{bearer}"), "", 200),
        ("GET", "/login", format!("{own}|authorization: bearer TOKEN"), "", 200),
        ("POST", "/login", format!("{own}|{origin}|{json}"), right, 200),
        ("GET", &live, format!("{own}|{bearer}|{WS}"), "", 101),
        ("GET", "/ws/list", format!("{own}|{bearer}|{WS}"), "", 101),
    ];
    let token = web.token().to_owned();
    let fill = |text: &str| text.replace("TOKEN", &token).replace("PORT", &web.port.to_string());
    let mut cookie = String::new();
    for (method, path, headers, body, status) in cases {
        let headers = fill(&headers);
        let headers: Vec<&str> = headers.split('|').collect();
        let answer = http(web.port, method, &fill(path), &headers, &fill(body)).expect("an answer");
        assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.body);
        assert!(!answer.body.contains(&token) && !answer.head.contains(&token), "a token stays where it is");
        if status != 400 || method == "POST" {
            let head = answer.head.to_ascii_lowercase();
            assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
            assert!(!head.contains("unsafe-inline") && head.contains("nosniff"), "{head}");
        }
        if let Some(line) = answer.head.lines().find(|l| l.starts_with("set-cookie: ")) {
            assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict"), "{line}");
            cookie = line["set-cookie: ".len()..].split(';').next().unwrap_or_default().to_owned();
        }
    }
    let with_cookie = [&fill(own)[..], &format!("Cookie: other=1; {cookie}")];
    assert_eq!(http(web.port, "GET", "/login", &with_cookie, "").expect("an answer").status, 200);
    let out = [&fill(own)[..], &fill(origin), &format!("Cookie: {cookie}")];
    assert_eq!(http(web.port, "DELETE", "/login", &out, "").expect("an answer").status, 204);
    assert_eq!(http(web.port, "GET", "/login", &with_cookie, "").expect("an answer").status, 401);
    assert!(web.stop().success());
    assert_eq!(session.info()["state"], "running", "sessions go on");
}

#[test]
fn a_person_types_pastes_selects_resizes_and_finds_their_way() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let web = Web::start(&home, &["shell"]);
    browser.go(&web.url);
    browser.take();
    assert!(
        !browser
            .js("return location.href + document.documentElement.outerHTML")
            .to_string()
            .contains(web.token())
    );
    // Keys, with the modes in force: an arrow brings the last command back.
    browser.type_keys(&format!("echo one-$((40+2)){ENTER}"));
    browser.wait_text("one-42");
    browser.type_keys(&format!("\u{e013}{ENTER}"));
    eventually("it a second time", || session.peek().matches("\none-42").count() == 2);
    browser.type_keys("never");
    // Ctrl-C throws away what the program has not read.
    browser.wait_text("$ never");
    browser.chord(&[CONTROL, "c"]);
    browser.wait_text("never^C");
    // Colours and widths, as the server's model has them.
    browser.type_keys(&format!(r#"printf '\033[38;2;1;200;3mgreen\033[m 日本x \033]8;;https://example.org/\033\\link\033]8;;\033\\ \033]8;;file:///etc/passwd\033\\file\033]8;;\033\\\n'{ENTER}"#));
    browser.wait("a green word", "return [...document.querySelectorAll('.row span')].some(s => s.textContent === 'green' && getComputedStyle(s).color === 'rgb(1, 200, 3)')");
    let links = browser
        .js("return [...document.querySelectorAll('.row a')].map(a => [a.textContent, a.href, a.rel])");
    assert_eq!(links, json!([["link", "https://example.org/", "noopener noreferrer"]]), "only to the web");
    let columns = browser.js(
        "const p = document.querySelector('.tile').tile.painter;
         const row = [...document.querySelectorAll('.row')].find(r => r.textContent.includes('日本x') && !r.textContent.includes('printf'));
         const pin = [...row.querySelectorAll('.pin')][1].getBoundingClientRect();
         return Math.round((pin.right - row.getBoundingClientRect().left) / p.cw * 100) / 100",
    );
    assert_eq!(columns, json!(10), "a wide character takes two cells");
    // A paste is in brackets where the program wants it so; bash does.
    browser.js(
        "const data = new DataTransfer(); data.setData('text/plain', 'echo pasted-1\\necho pasted-2');
         document.querySelector('.hands').dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}))",
    );
    session.wait_text("echo pasted-2");
    assert!(!session.peek().contains("\npasted-1"), "nothing of it ran by itself");
    browser.type_keys(ENTER);
    browser.wait_text("\npasted-2");
    // Selecting with the mouse, and copying.
    browser.type_keys(&format!("clear; echo select-me; seq 1 300; echo the-end{ENTER}"));
    browser.wait_text("\nthe-end\n$");
    let at = browser.js(
        "const row = [...document.querySelectorAll('.row')].findLast(r => r.textContent === '299').getBoundingClientRect();
         const p = document.querySelector('.tile').tile.painter;
         return [Math.round(row.left + 1), Math.round(row.top + row.height / 2), Math.round(row.left + 3 * p.cw), Math.round(row.bottom + row.height / 2)]",
    );
    let n = |i: usize| at[i].as_i64().expect("a number");
    browser.drag((n(0), n(1)), (n(2), n(3)));
    let copied = browser.js("let text = ''; const data = new DataTransfer();
         const e = new ClipboardEvent('copy', {clipboardData: data, bubbles: true, cancelable: true});
         document.querySelector('.screen').dispatchEvent(e); return data.getData('text/plain')");
    assert_eq!(copied, "299\n300");
    // What has scrolled away is found, and fetched.
    browser.chord(&[CONTROL, SHIFT, "f"]);
    browser.type_keys("select-me");
    browser.wait("the place of it", "return document.querySelector('.mark.current') !== null");
    browser.wait_text("select-me");
    browser.shot("search");
    browser.js("document.querySelector('.finder input').dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))");
    // The session takes the window's size while this page drives.
    let before = session.info();
    browser.set_size(800, 500);
    eventually("another size", || {
        let now = session.info();
        now["cols"].as_u64() < before["cols"].as_u64() && now["rows_n"].as_u64() < before["rows_n"].as_u64()
    });
    browser.wait(
        "the size of the window",
        "const p = document.querySelector('.tile').tile.painter; const [cols, rows] = p.room(); return cols === p.frame.cols && rows === p.frame.rows_n",
    );
    browser.type_keys(&format!("clear; stty size{ENTER}"));
    eventually("the program to be told", || {
        let now = session.info();
        session.peek().contains(&format!("{} {}", now["rows_n"], now["cols"]))
    });
    browser.shot("driving");
    // By keyboard alone: out of the terminal, through the buttons, to the list and back.
    let focused = |what: &str| {
        browser.wait(what, &format!("return document.activeElement.matches({})", json!(what)));
    };
    browser.chord(&[CONTROL, SHIFT, "l"]);
    focused(".stick");
    browser.chord(&[SHIFT, TAB]);
    focused("#sessions li[role=button]");
    // The list may come anew meanwhile.
    let _other = Session::start(&home, "other", &SHELL);
    browser.wait("another list", "return document.querySelectorAll('#sessions li').length === 2");
    browser.wait("the same entry", "return document.activeElement.textContent.startsWith('shell')");
    browser.type_keys(" ");
    focused(".hands");
    assert_eq!(browser.log(), json!([]), "nothing to complain about, the content policy included");
}

/// A page that only looked took the stick, made the program as small as its tile and shut bots out.
#[test]
fn looking_changes_nothing_and_typing_drives() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let web = Web::start(&home, &["shell"]);
    browser.go(&web.url);
    browser.wait_text("not driven");
    browser.js("document.querySelector('.tile').tile.close()");
    browser.js("document.querySelector('#sessions li').click()");
    browser.wait_text("not driven");
    // Not when its window changes either; the letters fit instead.
    browser.set_size(700, 500);
    let fits = "const { painter } = document.querySelector('.tile').tile; return painter.frame.cols === 80 && painter.space.offsetWidth <= painter.el.offsetWidth && painter.cw * 80 <= painter.el.offsetWidth";
    browser.wait("small letters", fits);
    assert!(home.run(["type", &session.id, "echo by-a-bot\n"]).status.success());
    browser.wait_text("\nby-a-bot");
    let now = session.info();
    assert_eq!((&now["cols"], &now["rows_n"], &now["driver"]), (&json!(80), &json!(24), &json!(null)));
    browser.type_keys(&format!("echo by-a-person{ENTER}"));
    browser.wait_text("\nby-a-person");
    browser.wait_text("you drive");
    eventually("the size of the tile", || session.info()["cols"] != 80);
}

/// A paste of more than four megabytes was lost without a message.
#[test]
fn a_large_paste_comes_whole_and_one_too_large_is_refused() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    // Between the brackets that it asks for, it keeps what comes.
    let got = home.path("got");
    let script = format!(
        r"stty raw -echo; printf '\033[?2004hready'; head -c 6000012 >{}; printf 'all-%s' of-it; sleep 1000",
        got.display()
    );
    let _session = Session::start(&home, "eats", &["sh", "-c", &script]);
    let web = Web::start(&home, &["eats"]);
    browser.go(&web.url);
    browser.wait_text("ready");
    let paste = |text: &str| {
        browser.js(&format!(
            "const data = new DataTransfer(); data.setData('text/plain', {text});
             document.querySelector('.hands').dispatchEvent(new ClipboardEvent('paste', {{clipboardData: data, bubbles: true, cancelable: true}}))",
        ));
    };
    paste("'x'.repeat(17e6)");
    browser.wait_text("nothing was pasted: this is 17 MB");
    paste("'0123456789'.repeat(6e5)");
    let mut expected = b"\x1b[200~".to_vec();
    expected.extend(b"0123456789".repeat(600_000));
    expected.extend(b"\x1b[201~");
    browser.wait_text("all-of-it");
    assert!(std::fs::read(&got).expect("a file") == expected, "every byte, in one pair of brackets");
    // A lost connection is reported, too.
    browser.js("const { link } = document.querySelector('.tile').tile; link.retry = () => {}; link.cut()");
    browser.wait("the cut", "return document.querySelector('.tile').tile.link.socket === null");
    paste("'lost'");
    browser.wait_text("nothing was pasted: there is no connection");
}

#[test]
fn two_tabs_share_a_session_and_one_comes_back_after_a_cut() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let web = Web::start(&home, &["shell"]);
    browser.go(&web.url);
    browser.take();
    let (first, second) = browser.new_tab();
    browser.go(&format!("http://127.0.0.1:{}/#s/{}", web.port, session.id));
    browser.wait_text("web drives");
    // A watching client sees the holder of the stick, and does not change the size.
    let size = session.info()["cols"].clone();
    browser.type_keys(&format!("echo refused{ENTER}"));
    browser.wait_text("take the stick to type");
    browser.tab(&first);
    browser.type_keys(&format!("echo from-the-first{ENTER}"));
    browser.wait_text("\nfrom-the-first");
    browser.tab(&second);
    browser.wait_text("\nfrom-the-first");
    assert_eq!(session.info()["cols"], size);
    assert!(!session.peek().contains("refused"));
    // It takes the stick, and the first client sees that.
    browser.take();
    browser.type_keys(&format!("echo from-the-second{ENTER}"));
    browser.wait_text("\nfrom-the-second");
    browser.tab(&first);
    browser.wait_text("\nfrom-the-second");
    browser.wait("the first to be told", "return document.querySelector('.stick').textContent === 'Take'");
    // The connection is cut; meanwhile something happens; the page comes back and shows it.
    browser.cut();
    browser.tab(&second);
    browser.js("document.querySelector('.hands').focus()");
    browser.type_keys(&format!("echo while-you-were-away{ENTER}"));
    browser.wait_text("\nwhile-you-were-away");
    browser.cut();
    browser.wait_to_drive_again();
    browser.tab(&first);
    browser.wait_text("\nwhile-you-were-away");
    browser.wait("the connection", "return !document.querySelector('.tile').classList.contains('away')");
    // The program ends, and every client sees how.
    browser.tab(&second);
    browser.js("document.querySelector('.hands').focus()");
    browser.type_keys(&format!("exit 7{ENTER}"));
    browser.wait_text("ended with 7");
    browser.tab(&first);
    browser.wait_text("ended with 7");
    // A client that comes after the end is told so, and does not retry for ever.
    browser.go(&format!("http://127.0.0.1:{}/#s/{}", web.port, session.id));
    browser.js("location.reload()");
    browser.wait_text("the session has ended");
    browser.wait("no more tries", "return document.querySelector('.tile').tile.link.closed");
}

#[test]
fn a_link_for_watching_does_not_let_type() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let web = Web::start(&home, &["--read-only", "shell"]);
    browser.go(&web.url);
    browser.wait_text("watching only");
    assert_eq!(browser.js("return document.querySelector('.stick').hidden"), true);
    // Not even past the page's own manners.
    let denied = browser.js_async(
        "const done = arguments[arguments.length - 1];
         const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws/session/' + document.querySelector('.tile').tile.id);
         socket.onopen = () => { socket.send('TAKE'); socket.send('KEY {\"text\":\"sneaked\"}'); };
         const got = [];
         socket.onmessage = (e) => { got.push(e.data.split(' ')[0]); if (got.filter(v => v === 'DENIED').length === 2) done(true); };",
    );
    assert_eq!(denied, true);
    let closed = browser.js_async(
        "const done = arguments[arguments.length - 1];
         const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws/session/' + document.querySelector('.tile').tile.id);
         socket.onopen = () => socket.send('HELLO {\"role\":\"bot\",\"name\":\"x\"}');
         socket.onclose = (e) => done(e.reason);",
    );
    assert_eq!(closed, "HELLO is not said here");
    assert!(!session.peek().contains("sneaked"));
}

#[test]
fn a_live_stream_for_other_players_has_the_screen_then_what_happens() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let web = Web::start(&home, &[]);
    browser.go(&web.url);
    browser.wait_text("shell");
    home.run(["type", &session.id, "echo before\n"]);
    eventually("its echo", || session.peek().contains("\nbefore"));
    browser.js(
        "window.got = []; window.socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws/alis', ['v1.alis']);
         socket.binaryType = 'arraybuffer'; socket.onmessage = (e) => got.push(new Uint8Array(e.data));
         window.told = () => got.map(m => new TextDecoder().decode(m))",
    );
    browser.wait("the screen", "return told().length >= 2 && told()[0] === 'ALiS\\x01' && got[1][0] === 1 && told()[1].includes('before')");
    assert_eq!(browser.js("return socket.protocol"), "v1.alis");
    home.run(["type", &session.id, "echo behind; exit 3\n"]);
    browser.wait("what happened", "return told().slice(2).some(m => m[0] === 'o' && m.includes('behind'))");
    browser.wait("the end", "return socket.readyState === 3 && got.at(-1)[0] === 4");
    assert_eq!(
        browser.js("const x = got.at(-2); return [x[0], x.at(-1)]"),
        json!([0x78, 3]),
        "an exit with its code"
    );
}

/// The place of the recording in the first tile, in milliseconds.
const PLACE: &str = "document.querySelector('.recording').tile.now";

/// Fails unless the process that plays this recording is in a sandbox.
fn assert_shut_in(recording: &Path) {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    let plays = |process: &PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|word| word == recording.as_os_str().as_encoded_bytes())
    };
    let status: Vec<String> = processes
        .filter(plays)
        .map(|process| std::fs::read_to_string(process.join("status")).expect("its status"))
        .collect();
    assert_eq!(status.len(), 1, "one process plays it");
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status[0].lines().any(|l| l == line), "{line} in {}", status[0]);
    }
}

#[test]
fn a_recording_plays_seeks_and_stops_in_a_browser() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    std::fs::create_dir_all(home.path("tapes/deep")).expect("made");
    // Two lines a second apart, a marker in between, and a long pause before the last.
    let cast = concat!(
        "{\"version\": 2, \"width\": 40, \"height\": 5}\n",
        "[0.5, \"o\", \"\\u001b[31mfirst\\u001b[m\\r\\n\"]\n",
        "[1.5, \"o\", \"second\\r\\n\"]\n",
        "[2.0, \"m\", \"half way\"]\n",
        "[2.5, \"o\", \"third\\r\\n\"]\n",
        "[900.0, \"o\", \"fourth\\r\\n1\\r\\n2\\r\\n3\\r\\n4\"]\n",
    );
    std::fs::write(home.path("tapes/deep/demo.cast"), cast).expect("written");
    std::fs::write(home.path("tapes/broken.ahr"), "no recording").expect("written");
    let web = Web::start(&home, &["--recordings", home.path("tapes").to_str().expect("text")]);
    browser.go(&web.url);
    browser.wait_text("deep/demo.cast");
    let pick = |name: &str| {
        browser.js(&format!(
            "[...document.querySelectorAll('#recordings li')].find(li => li.dataset.key === 'r/{name}').click()"
        ));
    };
    pick("deep/demo.cast");
    browser.wait("its length", &format!("return {PLACE}.duration_ms === 900000"));
    let shows = |words: &[&str], not: &[&str]| {
        let all: Vec<String> = words
            .iter()
            .map(|w| format!("t.includes('{w}')"))
            .chain(not.iter().map(|w| format!("!t.includes('{w}')")))
            .collect();
        browser.wait(
            &format!("{words:?} without {not:?}"),
            &format!("const t = document.querySelector('.rows').innerText; return {}", all.join(" && ")),
        );
    };
    assert_shut_in(&home.path("tapes/deep/demo.cast"));
    // The keys of players: tenths, steps, markers.
    browser.type_keys("9");
    shows(&["third"], &["fourth"]);
    browser.type_keys("0");
    shows(&[], &["first"]);
    browser.type_keys("..");
    shows(&["first", "second"], &["third"]);
    browser.type_keys(",");
    shows(&["first"], &["second"]);
    browser.type_keys("]");
    browser.wait("the marker's place", &format!("return {PLACE}.at_ms === 2000"));
    shows(&["second"], &["third"]);
    // Keys pressed faster than the player answers.
    browser.type_keys(">>><");
    browser.wait("the speed", &format!("return {PLACE}.speed === 4"));
    // The timeline, by hand.
    browser.js("const r = document.querySelector('.recording input[type=range]'); r.value = 600; r.dispatchEvent(new Event('input'))");
    shows(&["first"], &["second"]);
    // Played, with the long pause cut short, it comes to its end by itself.
    browser.js("const s = document.querySelectorAll('.recording footer select'); s[2].value = '250'; s[2].dispatchEvent(new Event('change')); s[1].value = '4'; s[1].dispatchEvent(new Event('change'))");
    browser.js("document.querySelector('.recording .play').click()");
    browser.wait("the end", &format!("return {PLACE}.at_ms === 900000 && !{PLACE}.playing"));
    shows(&["4"], &[]);
    browser.shot("recording");
    // What has scrolled off its screen is there.
    browser.js("document.querySelector('.recording').tile.search(); document.querySelector('.finder input').value = 'first'; document.querySelector('.recording').tile.find()");
    browser.wait("the place of it", "return document.querySelector('.mark.current') !== null");
    // After a cut it goes on where it was.
    browser.js(&format!("document.querySelector('.recording').tile.endSearch(); {PLACE}.at_ms; document.querySelector('.recording').tile.seek(1600)"));
    shows(&["second"], &["third"]);
    browser.wait("its place", &format!("return {PLACE}.at_ms === 1600"));
    // The keys are those of `play`.
    browser.js("document.querySelector('.recording').tile.focus()");
    browser.type_keys("?");
    browser.wait_text("1 minute forward");
    browser.type_keys("?G");
    browser.wait("the end", &format!("return {PLACE}.at_ms === {PLACE}.duration_ms"));
    browser.type_keys("g");
    browser.wait("the start", &format!("return {PLACE}.at_ms === 0"));
    browser.type_keys(">");
    browser.wait("more speed", &format!("return {PLACE}.speed === 8"));
    browser.chord(&["\u{e008}", "\u{e014}"]);
    browser.wait("a minute on", &format!("return {PLACE}.at_ms === 60000"));
    browser.type_keys("<");
    browser.wait("less speed", &format!("return {PLACE}.speed === 4"));
    browser.js("document.querySelector('.recording').tile.seek(1600)");
    browser.wait("it back there", &format!("return {PLACE}.at_ms === 1600"));
    browser.js("document.querySelector('.recording').tile.link.cut()");
    browser.wait("it back", "const t = document.querySelector('.recording'); return !t.classList.contains('away') && t.tile.now.at_ms === 1600");
    shows(&["second"], &["third"]);
    // One that cannot be played says why.
    pick("broken.ahr");
    browser.wait_text("broken.ahr: ");
    assert_eq!(browser.log(), json!([]), "nothing to complain about");
    // Others cannot be had by any name.
    for name in [
        "..%2f..%2fetc%2fpasswd",
        "../tapes/deep/demo.cast",
        "%2fetc%2fpasswd",
        "deep",
        "deep%2fdemo.cast%00",
    ] {
        let host = format!("Host: 127.0.0.1:{}", web.port);
        let bearer = format!("Authorization: Bearer {}", web.token());
        let headers = [
            &host[..],
            &bearer,
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ];
        let answer = http(web.port, "GET", &format!("/ws/play/{name}"), &headers, "").expect("an answer");
        assert_eq!(answer.status, 404, "{name}");
    }
}

/// The configuration speaks where options are silent, and themes of the user are offered.
#[test]
fn the_page_follows_the_configuration() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("tapes")).expect("made");
    std::fs::write(home.path("tapes/a.cast"), "{\"version\": 2, \"width\": 40, \"height\": 5}\n")
        .expect("written");
    let config = format!(
        "[web]\nread_only = true\nrecordings = \"{}\"\nhosts = [\"deck.example\"]\ntheme = \"mine\"\n\
         [themes.mine]\nbase = \"light\"\nforeground = \"#010203\"\n",
        home.path("tapes").display()
    );
    std::fs::write(home.path("c.toml"), config).expect("written");
    let mut command = home.tapdeck(["web"]);
    command.env("TAPDECK_CONFIG", home.path("c.toml"));
    let web = Web::run(command);
    let bearer = format!("Authorization: Bearer {}", web.token());
    let answer = http(web.port, "GET", "/login", &["Host: deck.example", &bearer], "").expect("an answer");
    let said: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!((&said["scope"], &said["theme"]), (&json!("observe"), &json!("mine")));
    let names: Vec<_> =
        said["themes"].as_array().expect("themes").iter().map(|t| t["name"].clone()).collect();
    assert_eq!(names, ["dark", "light", "high-contrast", "sepia", "dracula", "mine"]);
    let style = http(web.port, "GET", "/page/style.css", &["Host: deck.example"], "").expect("an answer");
    assert!(style.body.starts_with(":root{color-scheme:light;--fg:#010203;"), "{}", &style.body[..200]);
    let wrong = home.run(["web", "--theme", "lihgt"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean \"light\"?"), "{wrong:?}");
}

/// A visitor's choice changes the page, a live session and a recording, and outlives a reload.
#[test]
fn a_visitor_chooses_a_theme() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let blue = ["sh", "-c", "printf '\\033[34mlive blue\\033[m'; exec sleep 600"];
    let session = Session::start(&home, "blue", &blue);
    std::fs::create_dir_all(home.path("tapes")).expect("made");
    let cast =
        "{\"version\": 2, \"width\": 40, \"height\": 5}\n[0.0, \"o\", \"\\u001b[34mtaped blue\\u001b[m\"]\n";
    std::fs::write(home.path("tapes/a.cast"), cast).expect("written");
    let web = Web::start(&home, &["--recordings", home.path("tapes").to_str().expect("text")]);
    browser.go(&format!("{}&open=s/{}&open=r/a.cast", web.url, session.id));
    browser.wait("a place to seek", &format!("return {PLACE} !== undefined"));
    browser.js("document.querySelector('.recording').tile.link.send('STEP', { by: 1 })");
    let shown = |what: &str, text: &str, paper: &str| {
        for word in ["live blue", "taped blue"] {
            browser.wait(
                &format!("{word} in {what}"),
                &format!(
                    "return [...document.querySelectorAll('.row span')].some(s => s.textContent === '{word}' && \
                     getComputedStyle(s).color === '{text}' && \
                     getComputedStyle(s.closest('.screen')).backgroundColor === '{paper}')"
                ),
            );
        }
        browser.wait(what, &format!("return getComputedStyle(document.body).backgroundColor === '{paper}'"));
    };
    shown("dark", "rgb(110, 168, 254)", "rgb(18, 20, 23)");
    browser.js(
        "const t = document.getElementById('theme'); t.value = 'light'; t.dispatchEvent(new Event('change'))",
    );
    shown("light", "rgb(11, 87, 194)", "rgb(250, 250, 250)");
    browser.js("location.reload()");
    browser.wait("the choice", "return document.getElementById('theme')?.value === 'light'");
}
