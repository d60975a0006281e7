#!/usr/bin/env python3
"""An agent: reads prompts, pasted ones too, and answers as ROLE says."""

import os
import termios
import time
import tty

role = os.environ.get("ROLE", "echo")
saved = termios.tcgetattr(0)
tty.setraw(0)


def say(text):
    os.write(1, text.encode())


def read_prompt():
    say("\x1b]0;rest\x07\r\nagent> ")
    text, pasting, left = "", False, b""
    while True:
        left += os.read(0, 4096)
        while left:
            if left.startswith(b"\x1b[200~"):
                pasting, left = True, left[6:]
            elif left.startswith(b"\x1b[201~"):
                pasting, left = False, left[6:]
            elif left[:1] == b"\x1b" and len(left) < 6:
                break
            else:
                c, left = chr(left[0]), left[1:]
                if c in "\x03\x04":
                    return None
                if c == "\r" and not pasting:
                    return text
                c = "\n" if c == "\r" else c
                text += c
                say("\r\n" if c == "\n" else c)


def answer(turn, text):
    last = text.splitlines()[-1] if text else ""
    if role == "writer":
        return f"draft {turn} after: {last}"
    if role == "reviewer":
        return "APPROVED" if turn > 1 else "please fix line 7"
    if role == "judge":
        return f"seen {text.count('answer ===')} answers and {text.count('+new')} lines\r\nBEST: two"
    if role == "worker":
        with open("work.txt", "w") as file:
            file.write("new\n")
        return "did it"
    return f"{text} {text}"


say("\x1b[?2004h")
turn = 0
while (text := read_prompt()) is not None:
    turn += 1
    say("\x1b]0;busy\x07\r\n")
    time.sleep(0.2)
    if text.strip() == "crash":
        os._exit(3)
    say(answer(turn, text.strip()) + "\r\n")
termios.tcsetattr(0, termios.TCSADRAIN, saved)
