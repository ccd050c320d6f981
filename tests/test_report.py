"""`esker report`: the page in a real browser, its data, and the live server."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.logs.report.data import report_data, thinned, to_json
from esker.logs.report.page import page
from esker.logs.report.serve import open_server
from esker.runs.curves import Curve, aggregate
from esker.runs.reading import read_runs

needs_browser = pytest.mark.skipif(not browser.available(), reason="chromium and chromedriver are not installed")


def compared() -> list[str]:
    """Two seeds of one configuration, one of another, and another environment."""
    runs = [small_run(seed=0), small_run(seed=1), small_run(lr=0.2), small_run("Acrobot-v1", generations=1)]
    return [str(run) for run in runs]


def written(path: Path, *runs: str, flags: tuple[str, ...] = ()) -> Path:
    target = path / "page.html"
    assert main(["report", *runs, *flags, "-o", str(target)]) == 0
    return target


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser.chromium() as found:
        yield found


def open_page(driver: Any, target: Path, width: int = 1200) -> None:
    driver.get_log("browser")
    browser.resize(driver, width, 900, mobile=width < 600)
    driver.get(target.as_uri())


def chart(driver: Any, title: str, env: str = "CartPole-v1") -> Any:
    return driver.find_element("css selector", f'section[data-env="{env}"] svg[aria-label="{title}"]')


def drag(driver: Any, element: Any, start: int, end: int) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    moves = ActionChains(driver).move_to_element_with_offset(element, start, 0).click_and_hold()
    moves.move_by_offset(end - start, 0).release().perform()


def waited(condition: Callable[[], Any], seconds: float = 15.0) -> Any:
    """The condition's value as soon as it is true; its last value on time-out."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return answer


LABELS = "return [...arguments[0].querySelectorAll('path.line')].map((line) => line.dataset.label)"
DRAWN = "return [...arguments[0].querySelectorAll('path.line')].map((line) => line.getAttribute('d'))"
TEXTS = "return [...arguments[0].querySelectorAll('text')].map((text) => text.textContent)"


def drawn(element: Any) -> list[str]:
    """The paths of a chart's lines, read at one instant: a redraw replaces them."""
    return list(element.parent.execute_script(DRAWN, element))


def lines(element: Any) -> list[str]:
    return list(element.parent.execute_script(LABELS, element))


@needs_browser
def test_curves_are_there_and_nothing_is_reported_on_the_console(driver: Any, tmp_path: Path) -> None:
    open_page(driver, written(tmp_path, *compared()))
    assert lines(chart(driver, "Return")) == ["CartPole-v1/s0", "CartPole-v1/s1", "es lr=0.05: mean of 2 seeds", "es lr=0.2"]
    for title in ("Centre rank", "Steps per second", "Fitness distribution"):
        assert lines(chart(driver, title))
    assert lines(chart(driver, "Return", "Acrobot-v1")) == ["es"]
    assert driver.get_log("browser") == []


@needs_browser
def test_reference_lines_are_drawn_with_their_names_and_arrow_keys_move_the_cursor(driver: Any, tmp_path: Path) -> None:
    flags = ("--reference", "CartPole-v1:475=solved", "--reference", "Acrobot-v1:-100")
    open_page(driver, written(tmp_path, *compared(), flags=flags))
    element = chart(driver, "Return")
    assert lines(element)[-1] == "reference solved"
    assert "solved: 475" in element.find_element("xpath", "..").text
    assert lines(chart(driver, "Return", "Acrobot-v1")) == ["es", "reference -100"]
    assert not any("reference" in label for label in lines(chart(driver, "Centre rank")))
    element.send_keys("\ue014")  # arrow right
    assert element.find_element("xpath", "..").find_element("css selector", ".tip").is_displayed()


@needs_browser
def test_page_asks_the_network_for_nothing(driver: Any, tmp_path: Path) -> None:
    target = written(tmp_path, *compared())
    open_page(driver, target)
    assert driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", target.read_text())


@needs_browser
def test_hover_shows_the_values_of_the_journal(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    open_page(driver, written(tmp_path, str(small_run())))
    element = chart(driver, "Return")
    ActionChains(driver).move_to_element_with_offset(element, element.size["width"] // 2 - 14, 0).perform()
    tip = element.find_element("xpath", "..").find_element("css selector", ".tip")
    run = read_runs([small_run()])[0]
    last = run.rows[-1]
    assert tip.is_displayed()
    steps, low, high, mean, center = map(float, re.findall(r"\d[\d.]*", tip.text.replace(",", "")))
    assert steps == last["env_steps"]
    shown = [last["return_min"], last["return_max"], last["return_mean"], run.centers[-1]["center_return"]]
    np.testing.assert_allclose([low, high, mean, center], shown, atol=0.051)


@needs_browser
def test_drag_zooms_every_chart_of_the_environment_and_double_click_resets(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    open_page(driver, written(tmp_path, str(small_run())))
    element, other = chart(driver, "Return"), chart(driver, "Centre rank")
    before = drawn(element), drawn(other)
    drag(driver, element, -100, 100)
    assert (drawn(element) != before[0], drawn(other) != before[1]) == (True, True)
    ActionChains(driver).double_click(element).perform()
    assert (drawn(element), drawn(other)) == before


@needs_browser
def test_legend_hides_a_configuration_and_a_seed(driver: Any, tmp_path: Path) -> None:
    open_page(driver, written(tmp_path, *compared()[:3]))
    chips = {chip.text: chip for chip in driver.find_elements("css selector", ".chip")}
    chips["es lr=0.2"].click()
    assert lines(chart(driver, "Return")) == ["CartPole-v1/s0", "CartPole-v1/s1", "es lr=0.05: mean of 2 seeds"]
    next(chip for chip in driver.find_elements("css selector", ".chip") if chip.text == "seed 1").click()
    assert lines(chart(driver, "Return")) == ["es lr=0.05"]
    assert driver.get_log("browser") == []


@needs_browser
def test_axis_switch_draws_against_generations_and_wall_clock(driver: Any, tmp_path: Path) -> None:
    open_page(driver, written(tmp_path, str(small_run())))
    found = []
    for axis in ("steps", "generations", "time"):
        driver.find_element("css selector", f'[data-axis="{axis}"]').click()
        found += drawn(chart(driver, "Return"))[-1:]
    assert len(set(found)) == 3
    assert any(text.endswith(" s") for text in driver.execute_script(TEXTS, chart(driver, "Return")))


@needs_browser
def test_mean_over_seeds_is_the_one_that_plot_draws(driver: Any, tmp_path: Path) -> None:
    first = Curve(np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 5.0]), ended=True)
    second = Curve(np.array([5.0, 15.0, 40.0]), np.array([7.0, 17.0, 1.0]))
    open_page(driver, written(tmp_path, str(small_run())))
    source = (Path(esker.__file__).parent / "logs" / "report" / "curves.js").read_text()
    curves = json.dumps([{"x": c.x.tolist(), "y": c.y.tolist(), "ended": c.ended} for c in (first, second)])
    band = driver.execute_script(f"{source}; return aggregate({curves});")
    expected = aggregate([first, second], "mean", "range")
    assert expected is not None
    for name in ("x", "average", "low", "high"):
        np.testing.assert_allclose(band[name], getattr(expected, name))
    assert (band["carried"], expected.carried, band["x"][-1]) == (1, 1, 40)


@needs_browser
def test_interquartile_mean_of_many_seeds_is_the_one_that_plot_draws(driver: Any, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(9, 3))
    seeds = [Curve(np.arange(3.0), row) for row in values]
    open_page(driver, written(tmp_path, str(small_run())))
    source = (Path(esker.__file__).parent / "logs" / "report" / "curves.js").read_text()
    curves = json.dumps([{"x": c.x.tolist(), "y": c.y.tolist(), "ended": False} for c in seeds])
    band = driver.execute_script(f"{source}; return aggregate({curves});")
    expected = aggregate(seeds, "iqm", "ci")
    assert expected is not None
    np.testing.assert_allclose(band["average"], expected.average)
    width = expected.high - expected.low
    np.testing.assert_array_less(np.abs(np.array(band["interval"]["low"]) - expected.low), 0.15 * width)
    np.testing.assert_array_less(np.abs(np.array(band["interval"]["high"]) - expected.high), 0.15 * width)


@needs_browser
def test_phone_shows_everything_without_scrolling_sideways(driver: Any, tmp_path: Path) -> None:
    open_page(driver, written(tmp_path, *compared()), width=360)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 360
    assert lines(chart(driver, "Return"))


@needs_browser
def test_light_and_dark_follow_the_system_until_the_reader_chooses(driver: Any, tmp_path: Path) -> None:
    target = written(tmp_path, str(small_run()))

    def ground() -> str:
        return str(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))

    browser.prefer(driver, "dark")
    open_page(driver, target)
    dark = ground()
    browser.prefer(driver, "light")
    assert waited(lambda: ground() != dark)
    driver.find_element("id", "theme").click()
    assert ground() == dark
    driver.find_element("id", "theme").click()


@needs_browser
def test_configuration_marks_what_differs(driver: Any, tmp_path: Path) -> None:
    open_page(driver, written(tmp_path, *compared()[:3]))
    marked = driver.find_elements("css selector", "#configuration > .scroll td.differs")
    assert [cell.text for cell in marked] == ["0.2"]  # the other learning rate; seeds are one configuration
    assert "gymnasium" in driver.find_element("id", "versions").text


@needs_browser
def test_video_is_embedded_and_plays(driver: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(small_run(), run)
    open_page(driver, written(tmp_path, str(run), flags=("--render",)))
    seconds = "return document.querySelector('video').readyState >= 1 ? document.querySelector('video').duration : null"
    assert waited(lambda: driver.execute_script(seconds)) > 0.1


SWEEP: dict[str, Any] = {
    "name": "small",
    "env": "CartPole-v1",
    "sampler": "tpe",
    "objective": "centre return",
    "space": {"lr": {"low": 0.01, "high": 1.0, "log": True}, "shaping": {"choices": ["raw", "normalized"]}},
    "trials": [
        {"number": 0, "state": "complete", "value": 10.0, "params": {"lr": 0.01, "shaping": "raw"}, "env_steps": 5},
        {"number": 1, "state": "pruned", "value": 30.0, "params": {"lr": 0.1, "shaping": "normalized"}, "env_steps": 6},
        {"number": 2, "state": "running", "value": None, "params": {}, "env_steps": None},
    ],
    "best": 0,
    "importance": {"lr": 0.75, "shaping": 0.25},
}


@needs_browser
def test_sweep_has_a_line_for_each_trial_and_a_bar_for_each_option(driver: Any, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    shutil.copytree(small_run(), folder / "trials" / "0000")
    (folder / "sweep.json").write_text(json.dumps(SWEEP))
    open_page(driver, written(tmp_path, str(folder)))
    found = driver.find_elements("css selector", ".trial")
    assert sorted(line.get_attribute("data-trial") for line in found) == ["0", "1"]
    bars = [bar.text.split() for bar in driver.find_elements("css selector", ".bar")]
    assert bars == [["lr", "0.75"], ["shaping", "0.25"]]
    svg = driver.find_element("css selector", ".parallel")
    from selenium.webdriver.common.action_chains import ActionChains

    left = -svg.size["width"] // 2 + 46
    moves = ActionChains(driver).move_to_element_with_offset(svg, left, 60).click_and_hold()
    moves.move_by_offset(0, 80).release().perform()  # keep only the lowest learning rates
    trials = driver.find_elements("css selector", ".trial")
    faded = {line.get_attribute("data-trial"): float(line.get_attribute("opacity")) < 0.1 for line in trials}
    assert faded == {"0": False, "1": True}
    assert driver.get_log("browser") == []


@needs_browser
def test_sweep_comes_first_and_its_runs_have_the_names_of_their_trials(driver: Any, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    shutil.copytree(small_run(), folder / "trials" / "0000")
    shutil.copytree(small_run(lr=0.2), folder / "trials" / "0001")
    (folder / "trials" / "0001" / "status").write_text("finished: pruned after 4 generations\n")
    (folder / "sweep.json").write_text(json.dumps(SWEEP))
    open_page(driver, written(tmp_path, str(folder)))
    headings = [heading.text for heading in driver.find_elements("css selector", "h2")]
    assert headings[:2] == ["Sweep small", "Learning"]
    assert lines(chart(driver, "Return")) == ["trial 0", "trial 1"]
    assert [word.text for word in driver.find_elements("css selector", "#runs .status")] == ["finished", "pruned"]


@needs_browser
def test_lines_and_bands_are_explained_as_they_are_drawn(driver: Any, tmp_path: Path) -> None:
    open_page(driver, written(tmp_path, *compared()[:3]))

    def key() -> list[str]:
        texts = "return [...document.querySelectorAll('.chart:first-child .key span')].map((item) => item.textContent)"
        return list(driver.execute_script(texts))  # read at one instant: a redraw replaces them

    assert key() == ["centre return, mean over seeds", "each seed", "worst to best seed"]
    driver.find_element("css selector", '[data-tick="mean"]').click()
    assert key()[-1] == "mean of members"


@needs_browser
def test_repeated_seed_and_stall_are_remarked(driver: Any, tmp_path: Path) -> None:
    shutil.copytree(small_run(), tmp_path / "again")
    stalled = tmp_path / "stalled"
    shutil.copytree(small_run(seed=1), stalled)
    row = json.loads((stalled / "journal.jsonl").read_text().splitlines()[0]) | {"return_min": 9.0, "return_max": 9.0}
    rows = [json.dumps(row | {"generation": g, "env_steps": 100 * g}) + "\n" for g in range(20)]
    (stalled / "journal.jsonl").write_text("".join(rows))
    open_page(driver, written(tmp_path, str(small_run()), str(tmp_path / "again"), str(stalled)))
    first, second = (item.text for item in driver.find_elements("css selector", ".remarks li"))
    assert first == "CartPole-v1, es: 1 of 3 runs repeat seed 0; each seed counts once"
    assert second.startswith("stalled, generation 19: all members have had the same score (9.0) for 20 generations")
    assert "es: mean of 2 seeds" in lines(chart(driver, "Return"))


@needs_browser
def test_no_chart_is_empty_and_hybrids_are_drawn_against_training_steps(driver: Any, tmp_path: Path) -> None:
    run = tmp_path / "hybrid"
    shutil.copytree(small_run(), run)
    (run / "facts").unlink()  # hybrids commit snapshots
    rows = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        row |= {"training_steps": 100 * number, "critic_loss": 1.0 / (number + 1), "center_rank": None}
    (run / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    open_page(driver, written(tmp_path, str(run)))
    pressed = driver.find_element("css selector", '.segments [aria-pressed="true"]').text
    charts = [svg.get_attribute("aria-label") for svg in driver.find_elements("css selector", "svg[role=img]")]
    assert (pressed, "Critic loss" in charts) == ("training steps", True)
    assert {"Centre rank", "Fitness distribution"}.isdisjoint(charts)
    assert "nothing to show" not in driver.find_element("id", "main").text


@needs_browser
def test_served_page_follows_a_live_run(driver: Any, tmp_path: Path) -> None:
    run = tmp_path / "live"
    esker.train("CartPole-v1", seed=3, run_dir=str(run), **(QUICK | {"generations": 2}))
    with open_server([str(run)], 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        driver.get(f"http://127.0.0.1:{server.server_address[1]}/")
        assert driver.find_element("css selector", "#runs tbody td.number").text == "2"
        driver.execute_script("window.marker = 1")
        esker.resume(run, generations=5)
        # Read in one go: the page replaces the table while it follows the run.
        cell = "return document.querySelector('#runs tbody td.number').textContent"
        assert waited(lambda: driver.execute_script(cell) == "5")
        assert driver.execute_script("return window.marker") == 1  # by news, not by loading the page again
        server.shutdown()


def test_server_responds_only_to_its_own_name() -> None:
    with open_server([str(small_run())], 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host, port = str(server.server_address[0]), server.server_address[1]
        statuses = []
        for name, path in (("127.0.0.1", "/"), ("localhost", "/data.json"), ("evil.example", "/"), ("127.0.0.1", "/x")):
            connection = http.client.HTTPConnection(host, port)
            connection.request("GET", path, headers={"Host": f"{name}:{port}"})
            statuses.append(connection.getresponse().status)
            connection.close()
        assert (host, statuses) == ("127.0.0.1", [200, 200, 403, 404])
        server.shutdown()


def test_data_holds_the_quantiles_of_the_facts() -> None:
    (run,) = read_runs([small_run()])
    data = report_data([run])["runs"][0]["distribution"]
    fitness = [facts.fitness for facts in run.folder.facts()]
    np.testing.assert_allclose(data["levels"][3], [np.median(values) for values in fitness])
    np.testing.assert_allclose(data["levels"][0], [values.min() for values in fitness])
    assert data["generation"] == [0, 1, 2, 3]


def test_names_cannot_close_the_script_and_nan_is_null() -> None:
    text = to_json({"name": "</script><b>", "value": float("nan"), "tiny": 1.23456789e-7})
    assert text == '{"name":"\\u003c/script>\\u003cb>","value":null,"tiny":1.23457e-07}'
    assert json.loads(text)["name"] == "</script><b>"


def test_thinning_keeps_the_ends() -> None:
    assert thinned(5, 10) == [0, 1, 2, 3, 4]
    assert (len(kept := thinned(10_000, 600)), kept[0], kept[-1], len(set(kept))) == (600, 0, 9999, 600)


def test_run_without_a_generation_is_reported_as_such(tmp_path: Path) -> None:
    for name in ("config.toml", "about.json"):
        (tmp_path / name).write_text((small_run() / name).read_text())
    data = report_data(read_runs([tmp_path]))
    assert (data["runs"][0]["generations"], data["runs"][0]["distribution"]) == (0, None)
    assert "<!doctype html>" in page(data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "page.pdf"], "output is 'page.pdf'; expected a file that ends in .html"),
        (["--serve", "-o", "x.html"], "--serve writes no file, so -o has no effect"),
        (["--port", "80"], "--port is for --serve"),
        (["--serve", "--port", "99999"], "port 99999 cannot be used"),
    ],
)
def test_wrong_request_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(small_run()), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "is not a run folder and holds none" in capsys.readouterr().err


def test_unreadable_sweep_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(small_run(), tmp_path / "trials" / "0000")
    (tmp_path / "sweep.json").write_text('{"name": "cut')
    assert main(["report", str(tmp_path)]) == 2
    assert "sweep.json' cannot be read" in capsys.readouterr().err
