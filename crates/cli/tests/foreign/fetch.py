#!/usr/bin/env python3
"""Fetches files, with a bar for the progress."""
import sys, time

FILES = ["one.tar", "two.tar", "three.tar"]
WIDTH = 20

def bar(done):
    full = done * WIDTH // 100
    return "[" + "#" * full + "." * (WIDTH - full) + f"] {done:3d}%"

for name in FILES:
    for done in range(0, 101, 10):
        print(f"\r{name:<10} {bar(done)}", end="", flush=True)
        time.sleep(0.01)
    print("\r\033[K\033[32m✓\033[0m " + name)
print(f"{len(FILES)} files in {time.process_time():.2f}s")
