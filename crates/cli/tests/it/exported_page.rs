//! The page that an export is, in a real browser.

use serde_json::json;

use crate::browser::{Browser, CONTROL};
use crate::support::Home;

/// A recording in which everything that could act tries to.
fn hostile() -> String {
    let attack = "<img src=x onerror=alert(1)></script><script>window.hacked=1</script>";
    let wide = "日本語";
    let events = [
        json!([0.1, "o", format!("\u{1b}]0;</title><script>window.hacked=2</script>\u{7}{attack}\r\n")]),
        json!([
            0.2,
            "o",
            "\u{1b}]8;;javascript:window.hacked=3\u{1b}\\click me\u{1b}]8;;\u{1b}\\ \u{1b}]8;;data:text/html,x\u{1b}\\and me\u{1b}]8;;\u{1b}\\\r\n"
        ]),
        json!([0.3, "m", "</script><script>window.hacked=4</script>"]),
        // Half of a line that goes on in the next row, with a blank at the very edge.
        json!([
            1.0,
            "o",
            format!(
                "\u{1b}[2J\u{1b}[Hplain   \r\n\u{1b}[31mred\u{1b}[m and {wide} end\r\n{:39} {}\r\nlast   ",
                "wrapped", "Over here"
            )
        ]),
        json!([2.0, "o", "\r\nNEEDLE in the hay"]),
        json!([3.0, "o", "\r\nthe end"]),
    ];
    let mut cast =
        json!({"version": 2, "width": 40, "height": 12, "title": "</title><script>window.hacked=5</script>"})
            .to_string()
            + "\n";
    for event in events {
        cast.push_str(&format!("{event}\n"));
    }
    cast
}

#[test]
fn an_exported_page_plays_seeks_searches_and_copies_and_nothing_acts() {
    let home = Home::new();
    let Some(browser) = Browser::start(&home) else { return };
    std::fs::write(home.path("x.cast"), hostile()).expect("written");
    let out = home.run(["export", "x.cast", "-o", "x.html"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // A person gets it as a file.
    browser.go(&format!("file://{}", home.path("x.html").display()));
    let screen = |text: &str| {
        browser.wait(
            text,
            &format!("return document.getElementById('screen').innerText.includes({})", json!(text)),
        );
    };
    screen("<img src=x onerror=alert(1)>");
    // To the last moment and back, and played to its end by itself.
    browser.type_keys("9");
    screen("NEEDLE in the hay");
    browser.type_keys("0");
    browser.wait("the start", "return !document.getElementById('screen').innerText.includes('NEEDLE')");
    browser.type_keys("]");
    screen("click me");
    browser.js("const s = document.querySelectorAll('.bar select'); const speed = [...s].find(s => [...s.options].some(o => o.value === '8')); speed.value = 8; speed.dispatchEvent(new Event('change'))");
    browser.type_keys(" ");
    screen("the end");
    browser.wait("it to stop", "return document.querySelector('.bar button').textContent === 'Play'");
    // Searched, also over the end of a row, and marked where it stands.
    let search = |text: &str| {
        browser.js(&format!("const q = document.querySelector('input[type=search]'); q.value = {}; q.dispatchEvent(new Event('input'))", json!(text)));
    };
    search("needle");
    browser.wait("the hit", "return document.querySelectorAll('.hit').length === 6 && document.querySelector('.time').textContent.startsWith('0:02')");
    browser.shot("export-search");
    search("wrapped                                 over");
    browser.wait(
        "the hit over two rows",
        "return new Set([...document.querySelectorAll('.hit')].map(h => h.style.top)).size === 2",
    );
    search("");
    // Selected from the first row to the last, it is the text as it was written.
    browser.js("document.getElementById('screen').focus()");
    browser.type_keys("9");
    screen("NEEDLE");
    let select = |from: &str, to: &str| {
        browser.js(&format!(
            "const rows = [...document.querySelectorAll('#screen .row')], at = (text) => rows.find(r => r.textContent.includes(text));
             const range = document.createRange(); range.setStart(at({}), 0); const end = at({}); range.setEnd(end, end.childNodes.length);
             getSelection().removeAllRanges(); getSelection().addRange(range)",
            json!(from), json!(to)
        ));
        browser.copied()
    };
    let wrapped = format!("{:39} Over here", "wrapped");
    assert_eq!(select("plain", "last"), json!(format!("plain\nred and 日本語 end\n{wrapped}\nlast")));
    assert_eq!(
        select("wrapped", "wrapped"),
        json!(format!("{:39} ", "wrapped")),
        "a blank between words is one"
    );
    // The whole screen by the button, to the real clipboard.
    let at = browser.js("const b = [...document.querySelectorAll('button')].find(b => b.textContent === 'Copy screen').getBoundingClientRect(); return [Math.round(b.left + 5), Math.round(b.top + 5)]");
    let at = (at[0].as_i64().expect("a number"), at[1].as_i64().expect("a number"));
    browser.drag(at, at);
    browser.wait(
        "it copied",
        "return [...document.querySelectorAll('button')].some(b => b.textContent === 'Copied')",
    );
    browser.js(
        "const q = document.createElement('textarea'); q.id = 'pasted'; document.body.append(q); q.focus()",
    );
    browser.chord(&[CONTROL, "v"]);
    browser.wait("the paste", "return document.getElementById('pasted').value.length > 0");
    assert_eq!(
        browser.js("return document.getElementById('pasted').value"),
        json!(format!("plain\nred and 日本語 end\n{wrapped}\nlast\nNEEDLE in the hay"))
    );
    // Nothing of it acted, nothing was fetched, and nothing could have been.
    assert_eq!(
        browser
            .js("return [window.hacked ?? null, document.querySelectorAll('img, #screen a, iframe').length]"),
        json!([null, 0])
    );
    assert_eq!(browser.js("return performance.getEntriesByType('resource').length"), json!(0));
    let fetched = browser.js_async("const done = arguments[arguments.length - 1]; fetch('http://127.0.0.1:9/').then(() => done('sent'), () => done('refused'))");
    assert_eq!(fetched, "refused");
    let log = browser.log().to_string();
    assert!(log.contains("Content Security Policy"), "it is the policy that refuses: {log}");
    assert_eq!(log.matches("\"level\"").count(), log.matches("127.0.0.1:9").count().min(2), "{log}");
    browser.shot("export");
}
