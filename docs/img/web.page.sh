# The page in a browser, with a live agent, a build and a recording. Chromium takes the picture, so
# there is no stage.
agent=$(tapdeck run -d --name claude --size 56x20 -- claude)
build=$(tapdeck run -d --name build --size 56x20 -- bash -c '
    for i in $(seq 105 118); do printf "\e[1;32m   Compiling\e[m part-%d v0.1.0\n" "$i"; done
    printf "\e[1;34m    Finished\e[m in 4.2s\n\e[1;32m42 passed\e[m, \e[31m0 failed\e[m\n"; read')
mkdir tapes
tapdeck rec -q --headless tapes/release.ahr -- echo released
tapdeck wait claude --state idle
tapdeck paste claude 'fix the failing test' > paste.log
tapdeck wait claude --state idle
tapdeck wait build --text '42 passed'
trap 'kill $(jobs -p)' EXIT
mkfifo link driver
tapdeck web --recordings tapes > link &
read -r url < link
chromedriver --port=0 > driver 2> driver.log &
exec 3< driver
until [[ $line =~ 'successfully on port '([0-9]+) ]]; do read -r line <&3; done
at=http://127.0.0.1:${BASH_REMATCH[1]}/session

# ask PATH JSON: a request to the driver, and its answer.
ask() {
    curl -sf "$at$1" -d "$2"
}

sandbox=$([ "$(id -u)" != 0 ] || echo '"--no-sandbox",')
options="{\"args\":[$sandbox\"--headless\",\"--hide-scrollbars\",\"--window-size=1100,560\"]}"
opened=$(ask "" "{\"capabilities\":{\"alwaysMatch\":{\"goog:chromeOptions\":$options}}}")
at=$at/$(grep -o '"sessionId":"[^"]*' <<< "$opened" | cut -d'"' -f4)
ask /url "{\"url\":\"$url&open=s/$agent&open=s/$build\"}" > /dev/null
# Only the screens count: the list shows the text of the command, too.
screens='[...document.querySelectorAll(\".screen\")].map(s=>s.innerText).join()'
shown="{\"script\":\"const t = $screens; return t.includes(\\\"All 12 tests\\\") && t.includes(\\\"42 passed\\\") && document.body.innerText.includes(\\\"release.ahr\\\")\",\"args\":[]}"
until ask /execute/sync "$shown" | grep -q '"value":true'; do sleep 0.2; done
shoot() {
    curl -sf "$at/screenshot" | grep -o '[A-Za-z0-9+/=]\{100,\}' | base64 -d > "$1"
}

shoot "$OUT.png"
choose='const t = document.getElementById(\"theme\"); t.value = \"light\"; t.dispatchEvent(new Event(\"change\"))'
ask /execute/sync "{\"script\":\"$choose\",\"args\":[]}" > /dev/null
light='{"script":"return [...document.querySelectorAll(\".screen\")].every(s=>getComputedStyle(s).backgroundColor===\"rgb(250, 250, 250)\")&&document.body.innerText.includes(\"42 passed\")","args":[]}'
until ask /execute/sync "$light" | grep -q '"value":true'; do sleep 0.2; done
shoot "$OUT.light.png"
curl -sf -X DELETE "$at" > /dev/null
curtain 0
