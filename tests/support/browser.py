"""Headless Chromium, controlled by chromedriver through the WebDriver protocol."""

import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any, Dict, List, Optional

KEY = "element-6066-11e4-a52e-4f735466cecf"  # of the protocol: an element
CONTROL, ENTER, TAB, LEFT, RIGHT = "\ue009", "\ue007", "\ue004", "\ue012", "\ue014"


def missing() -> Optional[str]:
    """Returns the missing programs; None if all are installed."""
    wanted = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "chromedriver": ("chromedriver",)}
    lacking = [name for name, commands in wanted.items() if not any(map(shutil.which, commands))]
    return f"{' and '.join(lacking)}: not installed" if lacking else None


class Browser:
    """Window.

    Args:
        size: width and height.
        dark: preferred colour scheme.
        downloads: folder of downloads.
    """

    def __init__(self, size=(1280, 900), dark: bool = False, downloads: Optional[Path] = None):
        self.downloads = downloads
        binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.driver.stdout is not None
        line = next(line for line in self.driver.stdout if "successfully on port" in line)
        self.address = f"http://127.0.0.1:{line.rstrip().rstrip('.').rsplit(' ', 1)[1]}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        arguments += [f"--window-size={size[0]},{size[1]}", "--disable-background-networking"]
        arguments += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
        options = {"binary": binary, "args": arguments, "perfLoggingPrefs": {"enableNetwork": True}}
        options["prefs"] = {"download.default_directory": str(downloads)} if downloads else {}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = ""
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/session/{made['sessionId']}"

    def _ask(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + self.session + path, content, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, address: str) -> None:
        """Opens a page."""
        self._ask("POST", "/url", {"url": address})

    def resize(self, width: int, height: int) -> None:
        """Sets the size of the page, which can be smaller than the smallest window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": size})

    def run(self, script: str, *arguments: Any) -> Any:
        """Returns the result of a function body in JavaScript."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector: str) -> str:
        """Returns the first element of a CSS selector."""
        return self._ask("POST", "/element", {"using": "css selector", "value": selector})[KEY]

    def click(self, selector: str) -> None:
        """Clicks an element."""
        self._ask("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Types into an element; for file inputs a path."""
        self._ask("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def fill(self, selector: str, text: str) -> None:
        """Sets the value of a field."""
        self.run("const f = document.querySelector(arguments[0]); f.value = arguments[1]; f.focus()", selector, text)

    def point(self, selector: str) -> None:
        """Scrolls to an element and moves the mouse onto it."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", selector)
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": {KEY: self.find(selector)}}
        self._ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def press(self, *keys: str) -> None:
        """Presses keys together."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [*down, *up]}]})

    def text(self, selector: str) -> str:
        """Returns the visible text of an element."""
        return self._ask("GET", f"/element/{self.find(selector)}/text")

    def wait(self, condition: str, seconds: float = 30) -> Any:
        """Waits until an expression in JavaScript is true; returns its value."""
        end = time.monotonic() + seconds
        while True:
            found = self.run(f"return {condition}")
            if found:
                return found
            assert time.monotonic() < end, f"{condition} does not hold: {self.run('return document.body.innerText')}"
            time.sleep(0.05)

    def complaints(self) -> List[str]:
        """Returns the new messages of the console."""
        return [one["message"] for one in self._ask("POST", "/se/log", {"type": "browser"})]

    def requested(self) -> List[str]:
        """Returns the newly requested addresses."""
        entries = self._ask("POST", "/se/log", {"type": "performance"})
        events = (json.loads(one["message"])["message"] for one in entries)
        return [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]

    def close(self) -> None:
        """Ends the browser."""
        try:
            self._ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
