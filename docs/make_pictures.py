"""Makes every picture and video in the documentation from real runs: python docs/make_pictures.py

Runs are trained once under build/pictures and used again; videos show policies that come with esker. Needs chromium
and chromedriver, and the extras video, plot, mujoco and sweep.
"""

from __future__ import annotations

import base64
import io
import re
import sys
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps
from rich.console import Console

import esker
from esker.cli import main
from esker.logs.console import Display, headline

ROOT = Path(__file__).parent.parent
WORK, PICTURES = ROOT / "build" / "pictures", ROOT / "docs" / "pictures"
TERMINAL = (41, 41, 41)
sys.path.insert(0, str(ROOT / "tests"))


def esker_command(*arguments: object) -> None:
    """Run a command as a user would; one that fails ends the script."""
    print("esker", *arguments)
    if main([str(part) for part in arguments]):
        sys.exit(1)


def train(name: str, env: str, **options: Any) -> Path:
    """A run under the work folder; one that is there already is used again."""
    path = WORK / name
    if not path.exists():
        esker.train(env, run_dir=str(path), **options)
    return path


def console_svg(run: esker.Run, generations: int) -> str:
    """What a terminal shows after some generations, as SVG with no font from elsewhere."""
    output = Console(record=True, width=90, file=open("/dev/null", "w"), force_terminal=True)  # noqa: SIM115
    display, rows = Display(output), run.history[:generations]
    display.config, display.row, display.returns = run.config, rows[-1], [row["center_return"] for row in rows]
    for line in headline(run.config, run.folder, [])[::2]:
        output.print(line, highlight=False)
    output.print(display.picture())
    svg = output.export_svg(title="esker train CartPole-v1")
    return re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)


def cropped(picture: Image.Image) -> Image.Image:
    """The terminal alone, without the white around it and its round corners, at three quarters of its size."""
    left, top, right, bottom = ImageOps.invert(picture.convert("L")).getbbox() or (0, 0, *picture.size)
    inner = picture.crop((left + 8, top + 8, right - 8, bottom - 8))
    return inner.resize((inner.width * 3 // 4, inner.height * 3 // 4), Image.Resampling.LANCZOS)


def console(path: Path) -> None:
    """The live display: its last state as SVG, and all of it as a GIF of one frame a generation."""
    import browser

    run = esker.Run(path)
    frames = []
    with browser.chromium() as driver:
        for generations in range(1, len(run.history) + 1):
            file = WORK / "console.svg"
            file.write_text(console_svg(run, generations))
            browser.resize(driver, 1122, 440, 1.0, False)
            driver.get(file.as_uri())
            data = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
            frames.append(cropped(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")))
    (PICTURES / "console.svg").write_text(console_svg(run, len(run.history)))
    width, height = (max(frame.size[axis] for frame in frames) for axis in (0, 1))
    pages = [Image.new("RGB", (width, height), TERMINAL) for _ in frames]
    for page, frame in zip(pages, frames, strict=True):
        page.paste(frame)
    palette = pages[-1].quantize(64, dither=Image.Dither.NONE)
    small = [page.quantize(palette=palette, dither=Image.Dither.NONE) for page in pages]
    times = [400] * (len(small) - 1) + [3000]
    small[0].save(PICTURES / "console.gif", save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)


def screenshots(page: Path, sweep: Path) -> None:
    """The report in light, dark and on a phone, with a cursor on the first chart; and a sweep's."""
    import browser
    from selenium.webdriver.common.action_chains import ActionChains

    def shoot(name: str, target: Path, theme: str, width: int, height: int, selector: str, top: int = 190) -> None:
        browser.prefer(driver, theme)
        mobile = width < 600
        browser.resize(driver, width, height, 1.0, mobile)
        driver.get(target.as_uri())
        element = driver.find_element("css selector", selector)
        driver.execute_script(
            "scrollTo(0, Math.max(0, arguments[0].closest('section').offsetTop - arguments[1]))", element, top
        )
        if not mobile:
            ActionChains(driver).move_to_element_with_offset(element, 60, 0).perform()
        data = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        file = PICTURES / f"{name}.png"
        file.write_bytes(base64.b64decode(data))
        Image.open(file).convert("RGB").quantize(96, dither=Image.Dither.NONE).save(file, optimize=True)

    with browser.chromium() as driver:
        shoot("report-light", page, "light", 1100, 900, ".chart svg")
        shoot("report-dark", page, "dark", 1100, 900, ".chart svg")
        shoot("report-phone", page, "light", 390, 800, ".chart svg", top=0)
        shoot("sweep", sweep, "light", 1100, 640, ".parallel", top=70)


def videos() -> None:
    """Small GIFs of the policies that come with esker."""
    lengths = {
        "cartpole/es": 150,
        "halfcheetah/ars": 60,
        "swimmer/ars": 50,
        "swimmer/pgpe": 50,
        "lunarlander/es": 230,
        "lunarlandercontinuous/pgpe": 230,
        "bipedalwalker/es": 230,
    }
    for preset in esker.presets():
        if preset.policy is not None:
            target = PICTURES / f"{preset.name.replace('/', '-')}.gif"
            steps = lengths.get(preset.name, 100)
            esker_command("render", preset.name, "--caption", "--max-steps", steps, "--size", 200, "-o", target)


def make() -> None:
    """Everything."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    quick = [train(f"cartpole/lr0.05-s{seed}", "CartPole-v1", seed=seed, quiet=True) for seed in range(3)]
    slow = [train(f"cartpole/lr0.01-s{seed}", "CartPole-v1", seed=seed, lr=0.01, quiet=True) for seed in range(3)]
    page = WORK / "report.html"
    esker_command("report", *quick, *slow, "--render", "-o", page)
    esker_command("plot", *quick, *slow, "-o", PICTURES / "curve.svg")
    space = ["lr=0.001..0.1:log", "sigma=0.01..0.3:log", "population=8,16,32"]
    flags = ["--trials", 16, "--generations", 9, "--quiet", "--sweep-dir", WORK / "sweeps", "--name", "cartpole"]
    esker_command("sweep", "CartPole-v1", "--space", *space, *flags)
    esker_command("report", WORK / "sweeps" / "cartpole", "-o", WORK / "sweep.html")
    console(quick[0])
    screenshots(page, WORK / "sweep.html")
    videos()


if __name__ == "__main__":
    make()
