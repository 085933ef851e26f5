"""Take the picture of the demo's report that the README shows: docs/figures/report.png.

First `make demo`, then this. It needs Chromium and the tools of the tests (`make .venv/ready`).
"""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
SIZE = {"width": 1180, "height": 660}


def main():
    """The first screen, in light colours."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light", device_scale_factor=1.5)
        page.goto((ROOT / "demo" / "report.html").as_uri())
        page.screenshot(path=ROOT / "docs" / "figures" / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
