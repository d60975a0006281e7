#!/usr/bin/env python3
"""Reads cassettes by docs/formats.md alone, with the standard library and nothing of Tapdeck's.

    reader.py FOLDER...        one line of JSON each: {"cassette", "whole", "why", ...}
    reader.py --bind FOLDER... writes the digests of the manifest anew, as a recorder does
"""

import base64
import hashlib
import json
import pathlib
import sys
import uuid

REQUIRED = [
    "manifest.json",
    "input.jsonl",
    "output.raw",
    "output.jsonl",
    "frames.jsonl",
    "service-events.jsonl",
    "final.json",
    "scrub-report.json",
]
OPTIONAL = ["quota.json", "discovery.json"]
FEATURES = set()


class Refused(Exception):
    """The cassette is not whole."""


class Number(str):
    """A number as it stands in the file."""


def need(condition, why):
    if not condition:
        raise Refused(why)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def canonical(value):
    """JSON with sorted keys and no spaces; numbers as they stand in the file."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        members = (json.dumps(k, ensure_ascii=False) + ":" + canonical(value[k]) for k in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def manifest_digest(data):
    manifest = json.loads(data, parse_int=Number, parse_float=Number)
    said = {k: v for k, v in manifest.items() if k not in ("id", "content_digest")}
    return sha256(canonical(said).encode())


def binding(manifest):
    digest = manifest["content_digest"]
    lines = ["tapdeck cassette 1", manifest["id"], "output.raw " + digest["sha256"]]
    lines += [f"{name} {digest['files'][name]}" for name in sorted(digest["files"])]
    return sha256("".join(line + "\n" for line in lines).encode())


def digests(files):
    """What `content_digest.files` has to be."""
    others = {n: sha256(data) for n, data in files.items() if n not in ("output.raw", "manifest.json")}
    return {**others, "manifest.json": manifest_digest(files["manifest.json"])}


def load(folder):
    files = {}
    for name in REQUIRED + OPTIONAL:
        path = folder / name
        need(not path.is_symlink(), f"{name} is a symbolic link")
        if path.is_file():
            files[name] = path.read_bytes()
    for name in REQUIRED:
        need(name in files, f"{name} is missing")
    return files


def field(value, path, kind, where):
    for key in path.split("."):
        need(isinstance(value, dict) and key in value, f"{where}: {path} is missing")
        value = value[key]
    # In JSON, true is no number.
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    need(right, f"{where}: {path} is no {kind.__name__}")
    return value


def events(files, name):
    lines = files[name].decode().split("\n")
    need(lines.pop() == "", f"{name}: the last line is cut off")
    for number, line in enumerate(lines, 1):
        event = json.loads(line)
        where = f"{name} line {number}"
        yield where, field(event, "seq", int, where), field(event, "t_ms", int, where), event


def check_manifest(manifest):
    where = "manifest.json"
    need(field(manifest, "version", int, where) == 1, f"version {manifest['version']} is not known")
    unknown = [f for f in manifest.get("required_features", []) if f not in FEATURES]
    need(not unknown, f"the required features {unknown} are not known")
    need(str(uuid.UUID(field(manifest, "id", str, where))) == manifest["id"].lower(), "the id is no UUID")
    for path in [
        "content_digest.sha256",
        "harness.name",
        "harness.captured_at",
        "command.workdir_policy",
        "terminal.emulator.name",
        "terminal.emulator.version",
        "provenance.os",
        "provenance.arch",
        "provenance.recorded_at",
        "provenance.recorder_version",
    ]:
        field(manifest, path, str, where)
    for path in ["command.argv", "command.env_allowlist"]:
        field(manifest, path, list, where)
    for path in ["terminal.initial_rows", "terminal.initial_cols", "timing.resolution_ms"]:
        need(field(manifest, path, int, where) > 0, f"{path} is 0")
    policy = field(manifest, "timing.clock_policy", str, where)
    need(policy == "monotonic-elapsed", f"the clock policy {policy} is not known")


def check(files):
    manifest = json.loads(files["manifest.json"])
    check_manifest(manifest)
    seen = []
    raw = files["output.raw"]
    end = 0
    for where, seq, t_ms, event in events(files, "output.jsonl"):
        seen.append((seq, t_ms, where))
        offset, length = field(event, "offset", int, where), field(event, "length", int, where)
        need("bytes" not in event and "data" not in event, f"{where}: bytes stand in the line")
        need(offset == end and end + length <= len(raw), f"{where}: the chunk does not fit")
        end += length
        if event.get("sha256") is not None:
            need(event["sha256"] == sha256(raw[offset:end]), f"{where}: other bytes")
    need(end == len(raw), "output.raw is longer than its chunks")
    need(manifest["content_digest"]["sha256"] == sha256(raw), "output.raw has another digest")
    resizes = []
    for where, seq, t_ms, event in events(files, "input.jsonl"):
        seen.append((seq, t_ms, where))
        kind = field(event, "kind", str, where)
        if kind == "input":
            base64.b64decode(field(event, "bytes", str, where), validate=True)
        elif kind == "resize":
            rows, cols = field(event, "rows", int, where), field(event, "cols", int, where)
            need(rows > 0 and cols > 0, f"{where}: a size of 0")
            resizes.append((seq, t_ms, rows, cols))
        else:
            need(kind == "signal", f"{where}: {kind} is not known")
            field(event, "name", str, where)
    said = manifest["terminal"].get("resizes", [])
    said = [tuple(field(r, k, int, "resizes") for k in ("seq", "t_ms", "rows", "cols")) for r in said]
    need(said == resizes, "terminal.resizes and input.jsonl differ")
    for where, seq, t_ms, event in events(files, "frames.jsonl"):
        seen.append((seq, t_ms, where))
        rows = field(event, "size.rows", int, where)
        need(len(field(event, "text", list, where)) == rows, f"{where}: not {rows} rows of text")
        need(0 <= event["raw_start"] <= event["raw_end"] <= len(raw), f"{where}: a range outside")
    for where, seq, t_ms, event in events(files, "service-events.jsonl"):
        seen.append((seq, t_ms, where))
        need("payload" in event, f"{where}: payload is missing")
    final = json.loads(files["final.json"])
    last = field(final, "seq", int, "final.json")
    seen.append((last, field(final, "t_ms", int, "final.json"), "final.json"))
    field(final, "exit", dict, "final.json")
    field(final, "duration_ms", int, "final.json")
    field(json.loads(files["scrub-report.json"]), "status", str, "scrub-report.json")
    seen.sort()
    need([seq for seq, *_ in seen] == list(range(1, len(seen) + 1)), "seq has a gap or a repetition")
    need(seen[-1][0] == last, "final.json is not the last event")
    times = [t_ms for _, t_ms, _ in seen]
    need(times == sorted(times), "time goes back")
    resolution = manifest["timing"]["resolution_ms"]
    need(all(t % resolution == 0 for t in times), "a time is no multiple of the resolution")
    bound = manifest["content_digest"].get("binding")
    if bound is not None:
        said = manifest["content_digest"]["files"].items()
        said = {name: digest for name, digest in said if name in REQUIRED + OPTIONAL}
        need(said == digests(files), "a file has another digest")
        need(bound == binding(manifest), "the id or the digests are not those of the binding")
    return {
        "id": manifest["id"],
        "events": len(seen),
        "bytes": len(raw),
        "bound": bound is not None,
        "exit": final["exit"].get("code"),
        "last_row": next((r for r in reversed(final.get("final_text", "").split("\n")) if r), ""),
    }


def read(folder):
    answer = {"cassette": str(folder), "whole": True, "why": None}
    try:
        answer.update(check(load(folder)))
    except (Refused, ValueError, KeyError, TypeError) as e:
        answer.update(whole=False, why=str(e) or repr(e))
    return answer


def bind(folder):
    files = load(folder)
    manifest = json.loads(files["manifest.json"])
    written = lambda: (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    files["manifest.json"] = written()
    digest = manifest["content_digest"]
    digest["sha256"] = sha256(files["output.raw"])
    digest["files"] = {**digest.get("files", {}), **digests(files)}
    digest["binding"] = binding(manifest)
    (folder / "manifest.json").write_bytes(written())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bind"]:
        for name in sys.argv[2:]:
            bind(pathlib.Path(name))
    else:
        for name in sys.argv[1:]:
            print(json.dumps(read(pathlib.Path(name))))
