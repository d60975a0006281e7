"""Scenarios of Tapdeck as tests of pytest.

All scenarios that pytest has collected are run by one `tapdeck test`, in parallel, with the report
that the command writes.
"""

import json
import os
import subprocess

import pytest

SUFFIX = ".scenario.yaml"


class ScenarioFailed(Exception):
    """A scenario whose checks did not all hold."""


def pytest_addoption(parser):
    group = parser.getgroup("tapdeck")
    group.addoption("--tapdeck-live", action="store_true", help="run the programs, not their cassettes")
    group.addoption("--tapdeck-report", metavar="DIR", help="write a report into this folder")
    group.addoption("--tapdeck-command", metavar="PATH", default="tapdeck", help="the command to run")
    group.addoption(
        "--tapdeck-arg", metavar="ARG", action="append", default=[], help="one more argument for tapdeck test"
    )


def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(SUFFIX):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    def collect(self):
        name = self.path.name[: -len(SUFFIX)]
        for variant in variants(self.config, self.path):
            full = name if variant is None else f"{name} [{variant}]"
            yield ScenarioItem.from_parent(self, name=full, variant=variant)


class ScenarioItem(pytest.Item):
    def __init__(self, *, variant, **kwargs):
        super().__init__(**kwargs)
        self.variant = variant

    def runtest(self):
        judge(results(self.session)[os.path.realpath(self.path), self.variant])

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"scenario {self.name}"


def results(session):
    """The results of all scenarios of this session, by path; the first test that asks runs them."""
    if not hasattr(session, "_tapdeck_results"):
        paths = list(dict.fromkeys(str(i.path) for i in session.items if isinstance(i, ScenarioItem)))
        report = session.config.getoption("--tapdeck-report")
        live = session.config.getoption("--tapdeck-live")
        session._tapdeck_results = run(session.config, paths, live, report)
    return session._tapdeck_results


def variants(config, path):
    """The combinations of a scenario's matrix; [None] without a matrix."""
    command = [config.getoption("--tapdeck-command"), "test", "--list", "--json", "--", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        # The run says what is wrong with it.
        return [None]
    return [scenario["variant"] for scenario in json.loads(done.stdout)["scenarios"]]


def run(config, paths, live, report=None):
    command = [config.getoption("--tapdeck-command"), "test", "--json"]
    command += ["--live"] if live else []
    command += ["--report", report] if report else []
    command += config.getoption("--tapdeck-arg") + ["--"] + paths
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    # 1 says that a scenario failed, which the results tell.
    if done.returncode not in (0, 1):
        raise ScenarioFailed(f"tapdeck test exited with {done.returncode}: {done.stderr.strip()}")
    scenarios = json.loads(done.stdout)["scenarios"]
    return {(os.path.realpath(found["path"]), found["variant"]): found for found in scenarios}


def judge(scenario):
    if scenario["result"] == "skipped":
        pytest.skip(scenario["why"])
    if scenario["result"] == "failed":
        raise ScenarioFailed("\n".join(explain(fault) for fault in scenario["faults"]))


def explain(fault):
    line = f":{fault['line']}" if fault["line"] else ""
    return f"{fault['path']}{line}: {fault['claim']}\n  {fault['message']}\n{fault['details']}"


@pytest.fixture
def tapdeck(request):
    """Runs one scenario, and fails with what does not hold."""

    def run_one(path, live=False):
        for found in run(request.config, [str(path)], live).values():
            judge(found)

    return run_one
