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
        yield ScenarioItem.from_parent(self, name=self.path.name[: -len(SUFFIX)])


class ScenarioItem(pytest.Item):
    def runtest(self):
        judge(results(self.session)[os.path.realpath(self.path)])

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"scenario {self.name}"


def results(session):
    """The results of all scenarios of this session, by path; the first test that asks runs them."""
    if not hasattr(session, "_tapdeck_results"):
        paths = [str(item.path) for item in session.items if isinstance(item, ScenarioItem)]
        report = session.config.getoption("--tapdeck-report")
        live = session.config.getoption("--tapdeck-live")
        session._tapdeck_results = run(session.config, paths, live, report)
    return session._tapdeck_results


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
    return {os.path.realpath(scenario["path"]): scenario for scenario in scenarios}


def judge(scenario):
    if scenario["result"] == "skipped":
        pytest.skip(scenario["why"])
    if scenario["result"] == "failed":
        raise ScenarioFailed("\n".join(explain(scenario, fault) for fault in scenario["faults"]))


def explain(scenario, fault):
    line = f":{fault['line']}" if fault["line"] else ""
    return f"{scenario['path']}{line}: {fault['claim']}\n  {fault['message']}\n{fault['details']}"


@pytest.fixture
def tapdeck(request):
    """Runs one scenario, and fails with what does not hold."""

    def run_one(path, live=False):
        judge(run(request.config, [str(path)], live)[os.path.realpath(path)])

    return run_one
