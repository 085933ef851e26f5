"""Take the pictures of the demo: its report, and its model in the service's page.

First `make demo`, then this; it writes docs/figures/report.png and page.png. It needs Chromium and
the tools of the tests (`make .venv/ready`).
"""

import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
DEMO, FIGURES = ROOT / "demo", ROOT / "docs" / "figures"
REPORT, PAGE = {"width": 1180, "height": 690}, {"width": 1180, "height": 860}
ADDRESS = "http://127.0.0.1:18765"
CUSTOMER = "12347"  # whom the demo shows


@contextmanager
def serving():
    """The service of the demo's model, until the picture is taken."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pseudomallows", "serve", str(DEMO / "model.pm")]
        command += ["--port", ADDRESS.rpartition(":")[2], "--store", f"{folder}/clicks.sqlite"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            wait()
            yield
        finally:
            process.terminate()
            process.wait()


def wait():
    """Until the service answers, at most a minute."""
    for _ in range(120):
        try:
            urllib.request.urlopen(f"{ADDRESS}/healthz").close()
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the service does not answer")


def main():
    """The first screens, in light colours."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play, serving():
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        how = {"color_scheme": "light", "device_scale_factor": 1.5}
        page = browser.new_page(viewport=REPORT, **how)
        page.goto((DEMO / "report.html").as_uri())
        page.screenshot(path=FIGURES / "report.png")
        page = browser.new_page(viewport=PAGE, **how)
        page.goto(f"{ADDRESS}/#try/{CUSTOMER}")
        page.locator("#recommendations li").first.wait_for()
        page.wait_for_timeout(1000)  # the bars grow
        page.screenshot(path=FIGURES / "page.png")
        browser.close()


if __name__ == "__main__":
    main()
