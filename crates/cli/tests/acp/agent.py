#!/usr/bin/env python3
"""An agent with an input field, dialogs, and a journal in the file JOURNAL if that is set.

What a prompt says decides how it is answered: "tool" asks for a permission and runs a tool, "menu"
opens a panel, "slow" writes rows until Escape, "name" asks for a text, "exit" ends it.
"""

import json
import os
import select
import sys
import time
import tty

tty.setraw(0)
journal = os.environ.get("JOURNAL")


def say(text):
    os.write(1, text.replace("\n", "\r\n").encode())


def note(**record):
    if journal:
        with open(journal, "a") as file:
            file.write(json.dumps({"at": int(time.time() * 1000), **record}) + "\n")


def key(within=None):
    ready, _, _ = select.select([0], [], [], within)
    return os.read(0, 4096) if ready else b""


def prompt():
    say("\x1b]0;rest\x07\n› ")
    text, pasting, left = "", False, b""
    while True:
        left += key()
        while left:
            if left.startswith(b"\x1b[200~"):
                pasting, left = True, left[6:]
            elif left.startswith(b"\x1b[201~"):
                pasting, left = False, left[6:]
            elif left[:1] == b"\x1b" and pasting and len(left) < 6:
                break
            else:
                c, left = chr(left[0]), left[1:]
                if c == "\r" and not pasting:
                    return text
                c = "\n" if c == "\r" else c
                text += c
                say(c)


def menu(about, options):
    """Shows a dialog until an option is chosen by its number, or Escape is pressed."""
    rows = "".join(f"{'>' if n == 1 else ' '} {n}. {o}\n" for n, o in enumerate(options, 1))
    say(f"\x1b]0;ask\x07\x1b[2J\x1b[H{about}\n{rows}esc to cancel\n")
    while True:
        pressed = key()
        if pressed == b"\x1b":
            return None
        if pressed.isdigit() and 0 < int(pressed) <= len(options):
            return int(pressed)


def said(text):
    note(kind="said", text=text)
    say(f"{text}\n")


def answer(text):
    if "tool" in text:
        said("First **this**.")
        note(kind="tool", id="t1", name="Bash", about="rm -r build")
        chosen = menu("rm -r build\nDo you want to proceed?", ["Yes", "Yes, and don't ask again", "No"])
        say("\x1b]0;busy\x07\x1b[2J\x1b[H")
        note(kind="result", id="t1", text=f"removed\n```\n{chosen}", failed=chosen in (None, 3))
        said("Done." if chosen in (1, 2) else "Not done.")
    elif "slow" in text:
        for n in range(1000):
            say(f"row {n}\n")
            if b"\x1b" in key(0.2):
                say("broken off\n")
                return False
    elif "lines" in text:
        said("\n".join(f"{n}. line" for n in range(1, 101)))
    else:
        said(f"You said: {text}")
    return True


say("\x1b[?2004h")
if "trust" in sys.argv:
    if menu("Do you trust this folder?", ["Yes", "No"]) != 1:
        sys.exit(1)
    say("\x1b[2J\x1b[H")
while True:
    text = prompt().strip()
    say("\x1b]0;busy\x07\n")
    note(kind="asked", text=text)
    if text == "exit":
        sys.exit(3)
    time.sleep(0.2)
    if answer(text):
        note(kind="ended")
    else:
        note(kind="broken")
