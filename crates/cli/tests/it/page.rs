//! The page as people meet it: over TLS, on a telephone, with a mouse, an input method, another's
//! player.

use std::process::Command;

use serde_json::{Value, json};
use tapdeck_needs::{has, skip};

use crate::browser::{Browser, ENTER, Elsewhere, Kind, SHELL, SHIFT, Session, Web, http};
use crate::support::{Home, eventually};
use crate::wire::Server;

const ESCAPE: &str = "\u{e00c}";

#[test]
fn over_tls_it_is_the_same_page() {
    let home = Home::new();
    let Some(browser) = Browser::of_kind(&home, Kind { trusting: true, ..Kind::default() }) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let server = Server::start(&home, &["--listen", "wss://127.0.0.1:0"]);
    let origin = server.addresses[1].replace("wss://", "https://");
    browser.go(&format!("{origin}/#token={}&open=s/{}", server.token, session.id));
    browser.take();
    assert_eq!(browser.js("return location.protocol + isSecureContext"), "https:true");
    assert_eq!(
        browser.js("return document.querySelector('.tile').tile.link.socket.url.split(':')[0]"),
        "wss"
    );
    browser.type_keys(&format!("echo over-$((3+4)){ENTER}"));
    browser.wait_text("\nover-7");
    // After a cut it comes back by the cookie, which goes over nothing but TLS and is no script's
    // to read.
    browser.cut();
    browser.type_keys(&format!("echo again-$((4+4)){ENTER}"));
    browser.wait_to_drive_again();
    browser.js("document.querySelector('.hands').focus()");
    browser.type_keys(&format!("echo back-$((4+5)){ENTER}"));
    browser.wait_text("\nback-9");
    let cookies = browser.cdp("Network.getCookies", &json!({}));
    let ours = &cookies["cookies"][0];
    assert_eq!(
        (&ours["secure"], &ours["httpOnly"], &ours["sameSite"]),
        (&json!(true), &json!(true), &json!("Strict"))
    );
    assert_eq!(browser.js("return document.cookie"), "");
    assert_eq!(browser.log(), json!([]), "nothing to complain about");
}

/// A tab was lost when the server was started anew, and a link pasted into one that showed the page
/// did nothing.
#[test]
fn a_tab_takes_another_link_and_outlives_the_server() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let mut server = Server::start(&home, &["--listen", "ws://127.0.0.1:0"]);
    let link = server.says("page ");
    assert!(link.starts_with("http://127.0.0.1:") && link.ends_with("/#token=TOKEN"), "{link}");
    let page = link.strip_suffix("#token=TOKEN").expect("a place for it");
    // What is no fragment of ours is none, and says what is missing.
    browser.go(&format!("{page}#%ZZ"));
    browser.wait_text("needs a token");
    let go_to = |fragment: &str| {
        browser.js(&format!("location.hash = {}", json!(fragment)));
        browser.wait("it out of the address", "return !location.href.includes('token')");
    };
    go_to("token=wrong");
    browser.wait_text("no longer good");
    go_to(&format!("token={}&open=s/{}", server.token, session.id));
    browser.wait_text("not driven");
    browser.take();
    // A bad one changes nothing for a tab that is in.
    go_to("token=wrong");
    browser.wait_text("no longer good");
    browser.wait_text("you drive");
    browser.wait("what is open in the address", &format!("return location.hash === '#s/{}'", session.id));
    let wire = server.addresses[1].clone();
    let token = server.token.clone();
    browser.js("window.cut = document.querySelector('.tile').tile.link.socket");
    drop(server);
    browser.wait_text("connection lost");
    let _server = Server::start(&home, &["--listen", &wire]);
    browser.wait_to_drive_again();
    browser.type_keys(&format!("echo back-$((4+5)){ENTER}"));
    browser.wait_text("\nback-9");
    browser.wait("the list", "return document.querySelector('#sessions li.open') !== null");
    assert!(!browser.js("return document.documentElement.outerHTML").to_string().contains(&token));
    assert_eq!(browser.js("return [localStorage.length, sessionStorage.length]"), json!([0, 0]));
}

/// The wire from a browser, which knows the server by the hash that it prints.
#[test]
fn a_page_can_run_a_session_over_web_transport() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let mut server = Server::start(&home, &["--listen", "wt://127.0.0.1:0"]);
    let hash = server.says("certificate ");
    let url = server.addresses[1].replace("wt://", "https://") + "/tty";
    let mut page = Elsewhere::new();
    page.serve(vec![("/", "text/html", "<!DOCTYPE html><title>t</title>".into())]);
    browser.go(&format!("http://127.0.0.1:{}/", page.port));
    let wanted = json!({
        "carriage": "raw", "backend": "local", "token": server.token, "cmd": ["sh", "-c", "stty size; exit 7"],
        "tty": {"term": "xterm-256color", "cols": 91, "rows": 23},
    });
    let got = browser.js_async(&format!(
        "const done = arguments[arguments.length - 1];
         (async () => {{
           const hash = Uint8Array.from({hash:?}.match(/[0-9a-f]{{2}}/gi).map(h => parseInt(h, 16)));
           const wt = new WebTransport({url:?}, {{ serverCertificateHashes: [{{ algorithm: 'sha-256', value: hash }}] }});
           await wt.ready;
           const stream = await wt.createBidirectionalStream();
           const body = new TextEncoder().encode({wanted:?});
           const head = new Uint8Array(4); new DataView(head.buffer).setUint32(0, body.length);
           const writer = stream.writable.getWriter();
           await writer.write(head); await writer.write(body);
           let all = '';
           const reader = stream.readable.pipeThrough(new TextDecoderStream('latin1')).getReader();
           for (;;) {{ const {{ value, done: over }} = await reader.read(); if (over) break; all += value; }}
           return all;
         }})().then(done, (e) => done('failed: ' + e));",
        wanted = wanted.to_string(),
    ));
    let got = got.as_str().unwrap_or_default();
    for part in ["\"opened\"", "23 91\r\n", "\"exit\"", "\"code\":7"] {
        assert!(got.contains(part), "{part} in {got:?}");
    }
}

/// The player that people know, as they would put it on a page of their own.
#[test]
fn asciinemas_own_player_watches_a_live_session() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let Some((script, style)) = asciinema_player(&home) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    home.run(["type", &session.id, "printf '\\033[32mgreen\\033[m before\\n'\n"]);
    session.wait_text("green before");
    let html = |port: u16| {
        format!(
            "<!DOCTYPE html><link rel=stylesheet href=/player.css><div id=player></div><script src=/player.js></script>
             <script>window.player = AsciinemaPlayer.create({{driver: 'websocket', url: 'ws://127.0.0.1:{port}/ws/alis/{}', bufferTime: 0.1}}, document.getElementById('player'), {{autoPlay: true, cols: 80, rows: 24, fit: false}})</script>",
            session.id
        )
    };
    // Where the other page is has to be known before ours is asked to let it watch.
    let mut other = Elsewhere::new();
    let web = Web::start(&home, &["--player", &format!("http://127.0.0.1:{}", other.port)]);
    other.serve(vec![
        ("/", "text/html", html(web.port)),
        ("/player.js", "text/javascript", script),
        ("/player.css", "text/css", style),
    ]);
    // A browser that is not logged in sees nothing.
    let there = format!("http://127.0.0.1:{}/", other.port);
    browser.go(&there);
    browser.wait("the player", "return document.querySelector('.ap-player') !== null");
    assert!(!browser.text().contains("green"));
    browser.go(&web.url);
    browser.wait_text("shell");
    browser.go(&there);
    browser.wait_text("before");
    let green = "return [...document.querySelectorAll('.ap-term *')].some(e => e.textContent.trim() === 'green' && getComputedStyle(e).color !== getComputedStyle(document.querySelector('.ap-term')).color)";
    browser.wait("its colour", green);
    home.run(["type", &session.id, "echo live-$((20+3))\n"]);
    browser.wait_text("live-23");
    browser.shot("asciinema-player");
    // It may watch, and nothing else.
    let closed = browser.js_async(&format!(
        "const done = arguments[arguments.length - 1];
         const socket = new WebSocket('ws://127.0.0.1:{}/ws/session/{}'); socket.onopen = () => done('open'); socket.onerror = () => done('refused');",
        web.port, session.id
    ));
    assert_eq!(closed, "refused");
}

/// Its script and its style; `None`, with a word about it, where it cannot be had.
fn asciinema_player(home: &Home) -> Option<(String, String)> {
    if !has("npm") {
        return None;
    }
    let folder = home.path("player");
    std::fs::create_dir_all(&folder).expect("made");
    let install =
        ["install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", "asciinema-player@3.17.0"];
    let done = Command::new("npm").args(install).current_dir(&folder).output().expect("npm runs");
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        skip(&format!("npm could not install asciinema-player: {}", why.lines().next().unwrap_or_default()));
        return None;
    }
    let bundle = folder.join("node_modules/asciinema-player/dist/bundle");
    let read = |name: &str| std::fs::read_to_string(bundle.join(name)).expect("in the package");
    Some((read("asciinema-player.min.js"), read("asciinema-player.css")))
}

#[test]
fn the_mouse_is_the_programs_when_it_wants_it() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let script = r"stty raw -echo; printf '\033[?1002h\033[?1006hready '; exec cat -v";
    let session = Session::start(&home, "mouse", &["sh", "-c", script]);
    let web = Web::start(&home, &["mouse"]);
    browser.go(&web.url);
    browser.take();
    browser.wait("the mode", "return document.querySelector('.tile').tile.painter.frame.mouse === true");
    browser.drag(browser.cell(4, 2), browser.cell(8, 5));
    let joined = || session.peek().replace('\n', "");
    eventually("a release", || joined().contains("^[[<0;9;6m"));
    let reports = joined();
    assert!(reports.contains("^[[<0;5;3M"), "the press: {reports}");
    assert!(reports.contains("^[[<32;"), "a move in between: {reports}");
    browser.wheel(browser.cell(1, 1), 100);
    browser.wheel(browser.cell(1, 1), -100);
    eventually("the wheel both ways", || joined().contains("^[[<65;2;2M^[[<64;2;2M"));
    assert_eq!(joined().matches("^[[<65;").count(), 1, "a notch is one");
    // With Shift the mouse is the person's: text is selected, and the program hears nothing.
    let before = joined();
    let before_cell = |col| {
        let (x, y) = browser.cell(col, 0);
        (x - 3, y)
    };
    browser.drag_with(Some(SHIFT), before_cell(0), before_cell(5));
    browser.wait("a selection", "return getSelection().toString().length > 3");
    assert_eq!(browser.copied(), "ready");
    assert_eq!(joined(), before);
    assert_eq!(browser.log(), json!([]));
}

#[test]
fn vim_is_clicked_and_the_past_is_scrolled() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    if !has("vim") {
        return;
    }
    let lines: String = (1..=200).map(|n| format!("line {n} of it\n")).collect();
    std::fs::write(home.path("notes.txt"), lines).expect("written");
    let command = ["bash", "--norc", "--noprofile"];
    let session = Session::start(&home, "editor", &command);
    let web = Web::start(&home, &["editor"]);
    browser.go(&web.url);
    browser.take();
    // With no mode on, the wheel shows what has scrolled away; typing leads back.
    browser.type_keys(&format!("seq 1 300; echo the-end{ENTER}"));
    browser.wait_text("\nthe-end\n$");
    browser.wheel(browser.cell(3, 3), -2000);
    browser.wait("what was", "return !document.querySelector('.tile').tile.painter.follow && document.querySelector('.tile').tile.painter.el.scrollTop < 4000");
    browser.type_keys(&format!(
        "clear; vim -u NONE --not-a-term -c 'set showmode mouse=a ttymouse=sgr' {}{ENTER}",
        home.path("notes.txt").display()
    ));
    browser.wait("its mode", "return document.querySelector('.tile').tile.painter.frame.mouse === true");
    session.wait_text("line 9 of it");
    let (x, y) = browser.cell(5, 8);
    browser.drag((x, y), (x, y));
    browser.type_keys(&format!("iHERE{ESCAPE}"));
    session.wait_text("line HERE9 of it");
    let top = || session.peek().lines().next().unwrap_or_default().to_owned();
    assert_eq!(top(), "line 1 of it");
    browser.wheel((x, y), 100);
    eventually("three lines on", || top() == "line 4 of it");
    // A drag is a visual selection, which is deleted.
    browser.drag(browser.cell(0, 0), browser.cell(4, 0));
    session.wait_text("VISUAL");
    browser.type_keys("d");
    eventually("the words to be gone", || top() == "4 of it");
    browser.shot("vim");
    browser.type_keys(&format!(":q!{ENTER}"));
    browser
        .wait("the mouse again", "return document.querySelector('.tile').tile.painter.frame.mouse === false");
}

#[test]
fn on_a_telephone_there_are_keys_and_words_come_once() {
    let home = Home::new();
    let Some(browser) = Browser::of_kind(&home, Kind { phone: true, ..Kind::default() }) else { return };
    let session = Session::start(&home, "shell", &SHELL);
    let web = Web::start(&home, &["shell"]);
    browser.go(&web.url);
    browser.take();
    // The keys that a keyboard on glass lacks, and the terminal fits the screen.
    browser.wait("the keys", "return getComputedStyle(document.querySelector('.keys')).display === 'flex'");
    browser.wait("a narrow terminal", "const f = document.querySelector('.tile').tile.painter.frame; return f.cols >= 30 && f.cols < 60 && document.documentElement.scrollWidth <= innerWidth");
    // A tap leads the words to the terminal: that is what raises the keyboard.
    browser.js("document.activeElement.blur()");
    let (x, y) = browser.cell(5, 5);
    browser.swipe((x, y), (x, y));
    browser.wait("the focus", "return document.activeElement.className === 'hands'");
    // Text as a keyboard on glass gives it: composed, changed while it is composed, and given once.
    let compose = |text: &str| {
        let n = text.encode_utf16().count();
        browser
            .cdp("Input.imeSetComposition", &json!({"text": text, "selectionStart": n, "selectionEnd": n}));
    };
    compose("e");
    compose("ech");
    browser.wait("what is composed", "return document.querySelector('.hands.composing') !== null");
    browser.wait("a row's height", "return Math.abs(document.querySelector('.hands').getBoundingClientRect().height - document.querySelector('.tile').tile.painter.lh) < 1");
    assert!(!session.peek().contains("$ e"), "nothing is typed before it is sure");
    browser.cdp("Input.insertText", &json!({"text": "echo"}));
    session.wait_text(r"\$ echo$");
    browser.cdp("Input.insertText", &json!({"text": " "}));
    compose("に");
    compose("にほ");
    compose("日本");
    browser.cdp("Input.insertText", &json!({"text": "日本"}));
    session.wait_text(r"\$ echo 日本$");
    // One that is given up types nothing.
    compose("x");
    compose("");
    browser.cdp("Input.insertText", &json!({"text": "!"}));
    session.wait_text(r"\$ echo 日本!$");
    // Keys of the bar, by finger: Ctrl stays for the next letter.
    let tap = |label: &str| {
        let at = browser.js(&format!("const b = [...document.querySelectorAll('.keys button')].find(b => b.textContent === '{label}').getBoundingClientRect(); return [Math.round(b.left + b.width / 2), Math.round(b.top + b.height / 2)]"));
        let at = (at[0].as_i64().expect("a number"), at[1].as_i64().expect("a number"));
        browser.swipe(at, at);
    };
    browser.cdp("Input.dispatchKeyEvent", &json!({"type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}));
    session.wait_text("(?m)^日本!$");
    tap("↑");
    eventually("the line again", || session.peek().trim_end().matches("$ echo 日本!").count() == 2);
    tap("Ctrl");
    browser.wait("it held", "return document.querySelector('.keys .held')?.textContent === 'Ctrl'");
    browser.cdp("Input.insertText", &json!({"text": "a"}));
    browser.wait("it let go", "return document.querySelector('.keys .held') === null");
    browser.cdp("Input.insertText", &json!({"text": "printf "}));
    session.wait_text(r"\$ printf echo 日本!$");
    assert_eq!(browser.js("return document.activeElement.className"), "hands", "the keyboard stays");
    // Deleting, which keyboards on glass say with no key.
    browser.js("document.querySelector('.hands').dispatchEvent(new InputEvent('beforeinput', {inputType: 'deleteContentBackward', bubbles: true, cancelable: true}))");
    session.wait_text(r"\$ printfecho 日本!$");
    tap("^C");
    session.wait_text(r"\^C");
    browser.shot("phone");
    // A finger scrolls what a program shows that scrolls by itself.
    browser.cdp("Input.insertText", &json!({"text": "clear; seq 1 500 | less"}));
    browser.cdp("Input.dispatchKeyEvent", &json!({"type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}));
    browser.wait("less", "return document.querySelector('.tile').tile.painter.frame.wheel === true");
    session.wait_text("(?m)^10$");
    browser.swipe(browser.cell(5, 12), browser.cell(5, 3));
    eventually("it further down", || session.peek().lines().next().is_some_and(|top| top != "1"));
    // The list comes when it is asked for, and goes when something is picked.
    let folded = || browser.js("return document.body.classList.contains('folded')");
    assert_eq!(folded(), true);
    browser.js("document.getElementById('fold').click()");
    browser.wait_text("SESSIONS");
    browser.shot("phone-list");
    browser.js("document.querySelector('#sessions li').click()");
    assert_eq!(folded(), true);
    assert_eq!(browser.log(), json!([]));
}

/// Redraws in two halves with a pause between them; all of them synchronised.
const HALVES: &str = r#"worst=0
for i in $(seq 1 150); do
  printf '\033[?2026h\033[H\033[2J<left %d>' $i
  a=${EPOCHREALTIME/./}; sleep 0.003; b=${EPOCHREALTIME/./}
  (( b - a > worst )) && worst=$(( b - a ))
  printf '\033[5;1H<right %d>\033[?2026l' $i
  sleep 0.002
done
printf '\nworst %d us\n' $worst
read -r
printf '\033[?2026h\033[2J\033[Hforgotten'
sleep 1000"#;

#[test]
fn half_a_redraw_is_not_shown() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let script = format!("read -r\n{HALVES}");
    let session = Session::start(&home, "halves", &["bash", "-c", &script]);
    let web = Web::start(&home, &["halves"]);
    browser.go(&web.url);
    browser.take();
    browser.js(
        "const painter = document.querySelector('.tile').tile.painter, apply = painter.apply.bind(painter);
         window.seen = [];
         painter.apply = (frame) => { const moved = apply(frame); seen.push(painter.list.textContent); return moved; }",
    );
    browser.type_keys(ENTER);
    session.wait_text("worst [0-9]+ us");
    browser.wait_text("worst ");
    let torn = browser.js(
        r"return seen.filter(t => /left/.test(t) && (/<left (\d+)>/.exec(t) ?? [])[1] !== (/<right (\d+)>/.exec(t) ?? [])[1])",
    );
    let torn = torn.as_array().map_or(0, Vec::len) as u64;
    let frames = browser.js("return seen.length").as_u64().unwrap_or(0);
    assert!(frames > 10, "only {frames} frames");
    let peek = session.peek();
    let worst: u64 =
        peek.split("worst ").nth(1).and_then(|w| w.split(' ').next()?.parse().ok()).expect("a time");
    // A machine that sleeps so long over three milliseconds has waited as long as a frame is held;
    // one that is busy may read a second half late now and then. Shown as they come, about half of
    // the frames would be torn.
    if worst < 100_000 {
        assert!(4 * torn < frames, "{torn} of {frames} are torn");
    }
    // A program that never says that it has done is shown all the same.
    browser.type_keys(ENTER);
    browser.wait_text("forgotten");
}

#[test]
fn a_session_is_started_from_the_page_by_those_who_may() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    let web = Web::start(&home, &[]);
    browser.go(&web.url);
    let start = |command: &str| {
        browser.wait("the button", "return document.getElementById('new').hidden === false");
        browser.js("document.getElementById('opener').hidden = true; document.getElementById('new').click()");
        browser.type_keys(&format!("{command}{ENTER}"));
    };
    start("sh -c 'echo started-$((6*7)); exec sleep 1000'");
    browser.wait_text("started-42");
    browser.wait_text("you drive");
    browser.shot("new-session");
    // A failed start is reported where it was asked for.
    start("no-such-program-anywhere");
    browser.wait(
        "the reason",
        "return document.querySelector('#opener output').textContent.includes('no-such-program-anywhere')",
    );
    let sessions = || -> Vec<Value> {
        serde_json::from_slice::<Value>(&home.run(["ls", "--json"]).stdout)
            .expect("JSON")
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(sessions().len(), 1);
    // It outlives the page.
    drop(web);
    let id = sessions()[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(sessions()[0]["state"], "running");
    home.run(["kill", &id]);
    // At a server a token says who may; and what is started there is the server's, recorded like
    // everything.
    let runs = home.path("runs");
    let server =
        Server::start(&home, &["--listen", "ws://127.0.0.1:0", "--record", runs.to_str().expect("text")]);
    let origin = server.addresses[1].replace("ws://", "http://");
    let port: u16 = origin.rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
    let weak =
        String::from_utf8_lossy(&home.run(["serve", "token", "add", "--scope", "tty:attach,observe"]).stdout)
            .trim()
            .to_owned();
    let ask = |token: &str, body: &str| {
        let headers = [
            format!("Host: 127.0.0.1:{port}"),
            format!("Authorization: Bearer {token}"),
            "Content-Type: application/json".into(),
        ];
        http(port, "POST", "/api/v1/sessions", &headers.each_ref().map(String::as_str), body)
            .expect("an answer")
    };
    for (token, body, status) in [
        (&weak[..], r#"{"command": "true"}"#, 403),
        ("wrong", r#"{"command": "true"}"#, 401),
        (&server.token, r#"{"cmd": "true"}"#, 400),
        (&server.token, r#"{"command": "a\nb"}"#, 400),
        (&server.token, r#"{"command": "no-such-program-anywhere"}"#, 422),
    ] {
        let answer = ask(token, body);
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    assert!(server.listed().is_empty());
    browser.go(&format!("{origin}/#token={weak}"));
    browser.wait_text("start one with");
    assert_eq!(browser.js("return document.getElementById('new').hidden"), true);
    browser.go("about:blank");
    browser.go(&format!("{origin}/#token={}", server.token));
    start("stty size; exec cat");
    browser.wait_text("you drive");
    browser.wait("its size", r"return /^\d+ \d+$/m.test(document.querySelector('.rows').innerText)");
    assert_eq!(server.listed().len(), 1);
    let recorded = std::fs::read_dir(&runs)
        .expect("the folder")
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|x| x == "ahr"))
        .count();
    assert_eq!(recorded, 1);
}
