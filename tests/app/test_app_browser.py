"""The web app in a real browser: Debian's chromium, driven by Playwright."""

import re
import shutil
import time
from functools import partial
from urllib.parse import urlsplit

import numpy as np
import pytest
from app_client import Listener
from PIL import Image

import processes
import spinseg as ss
from effort import exhaustive
from spinseg.pictures import PICTURES
from spinseg.segmentation.presets.preset import Preset

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; on Debian: apt-get install chromium"),
    pytest.mark.xdist_group("app"),
]
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from spinseg.app.controls import controls  # noqa: E402

wait_until = partial(processes.wait_until, every=0.1)  # a look takes the browser a moment
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
TIMEOUT = 1000 * processes.PATIENCE  # milliseconds


@pytest.fixture(scope="module")
def address(server):
    """The address of the server."""
    return f"http://127.0.0.1:{server.port}/"


@pytest.fixture(scope="module")
def browser(address):
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address):
    """Open a page at a link; at the end there are no unexpected console messages and no requests to other hosts."""
    contexts, messages, hosts = [], [], set()

    def open_page(link="", size=DESKTOP, **options):
        contexts.append(browser.new_context(viewport=size, accept_downloads=True, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("console", lambda message: messages.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        page.goto(address + link)
        return page

    open_page.messages = messages
    yield open_page
    for context in contexts:
        context.close()
    assert not messages
    assert {host for host in hosts if host} <= {urlsplit(address).netloc}  # blob: has no host


def sweeps(page):
    return int(page.get_attribute("body", "data-sweeps") or 0)


def stage(page):
    return int(page.get_attribute("body", "data-stage") or 0)


def run_until(page, wanted):
    wait_until(lambda: sweeps(page) >= wanted)


def pause(page):
    """Pause, unless the chains have stopped by themselves, and wait for the outlines that are refined then."""
    page.locator("#run").evaluate("(button) => button.textContent === 'Pause' && button.click()")
    page.wait_for_selector('body[data-state="paused"]')
    wait_until(lambda: page.get_attribute("body", "data-outlined") == f"{stage(page)} {sweeps(page)}")


def show_advanced(page):
    page.evaluate("() => (document.getElementById('advanced').open = true)")


@pytest.fixture
def small(tmp_path):
    """A small photograph."""
    Image.open(PICTURES["coffee"].path).resize((180, 120)).save(tmp_path / "small.png")
    return tmp_path / "small.png"


def held(page, pattern):
    """Hold requests until the function that is returned is called."""
    waiting = []
    page.route(pattern, lambda route: waiting.append(route))

    def release():
        for route in waiting:
            route.continue_()
        page.unroute(pattern)

    return release


def pixels(page, selector="#canvas"):
    """The content of a canvas."""
    return page.locator(selector).first.evaluate("(canvas) => canvas.toDataURL()")


@exhaustive
def test_an_example_runs_pauses_steps_and_restarts(opened):
    page = opened()
    page.click('.example[data-name="coffee"]')
    show_advanced(page)
    run_until(page, 5)
    traces = pixels(page, "#trace-log_posterior canvas")
    wait_until(lambda: pixels(page, "#trace-log_posterior canvas") != traces)
    pause(page)
    n_sweeps = sweeps(page)
    time.sleep(0.5)
    assert sweeps(page) == n_sweeps
    page.keyboard.press("s")
    wait_until(lambda: sweeps(page) == n_sweeps + 1)
    assert page.inner_text("#sweeps").replace(",", "") == str(n_sweeps + 1)
    page.click("#restart")
    wait_until(lambda: sweeps(page) == 0)
    page.click("#step")
    wait_until(lambda: sweeps(page) == 1)


def test_it_opens_on_the_result_the_detail_changes_it_and_ten_draws_open_enlarge_and_are_chosen(opened, small):
    page = opened()
    page.set_input_files("#file", small)
    run_until(page, 8)
    assert page.is_checked("#result") and page.is_checked("[name=view][value=outlines]")
    pause(page)
    wait_until(lambda: "Result at detail 0.65 with" in page.inner_text("#caption"))
    assert "auto" in page.inner_text("#detail")
    first = pixels(page)
    page.focus("#control-detail-slider")
    page.keyboard.press("End")
    wait_until(lambda: "Result at detail 1 with" in page.inner_text("#caption"))
    wait_until(lambda: pixels(page) != first)
    wait_until(lambda: "detail=1" in page.evaluate("location.href"))
    assert page.input_value("#control-detail") == "1"
    finest = pixels(page)
    page.click("#detail .reset")
    wait_until(lambda: "Result at detail 0.65 with" in page.inner_text("#caption"))
    wait_until(lambda: pixels(page) != finest)
    before = pixels(page)  # now of all sweeps
    shown = page.inner_text("#clusters")
    assert f"with {shown} region" in page.inner_text("#caption")
    page.click("#ten")
    page.wait_for_selector("#answers-grid canvas >> nth=9")
    words = page.locator("#answers-grid span").all_inner_texts()
    assert len(words) == 10 and all(re.fullmatch(r"Detail 0\.\d\d: \d+ regions?, chain [12]", text) for text in words)
    assert page.locator("#answers-grid canvas").evaluate_all("(all) => all.map((each) => each.width)") == 10 * [180]
    n_sweeps = sweeps(page)
    page.keyboard.press("s")  # shortcuts of the page behind do nothing
    page.click("#answers-grid button >> nth=9")
    page.wait_for_selector("#answers-one canvas")
    page.go_back()
    page.wait_for_selector("#answers-grid canvas >> nth=9")
    assert "picture=small.png" in page.evaluate("location.href")
    page.click("#answers-grid button >> nth=9")
    page.click("#answers-choose")
    page.wait_for_selector("#answers", state="hidden")
    regions = re.search(r"(\d+) region", words[9])[1]
    wait_until(lambda: f"Single draw with {regions} region" in page.inner_text("#caption"))
    wait_until(lambda: pixels(page) != before)
    assert page.inner_text("#clusters") == regions
    single = pixels(page)
    page.keyboard.press("Escape")
    wait_until(lambda: "Result at detail 0.65 with" in page.inner_text("#caption") and pixels(page) != single)
    page.click("#ten")
    page.wait_for_selector("#answers-grid canvas >> nth=9")
    page.keyboard.press("Escape")
    page.wait_for_selector("#answers", state="hidden")
    assert sweeps(page) == n_sweeps and not page.is_visible("#legend")


def test_the_image_is_shown_while_it_is_prepared_and_old_outlines_stay_until_there_are_new_ones(opened, small):
    page = opened()
    assert page.is_visible("#welcome")
    release = held(page, "**/settings")
    page.set_input_files("#file", small)
    page.wait_for_selector("#status", state="visible")
    blank = page.evaluate("() => Object.assign(document.createElement('canvas'), {width: 10}).toDataURL()")
    wait_until(lambda: len(pixels(page)) > 10 * len(blank))  # the image, without chains
    image = pixels(page)
    wait_until(lambda: page.inner_text("#status") == "Preparing the image.")
    assert stage(page) == 0 and page.is_visible("#preset")
    assert page.is_visible("#exports") and not page.is_visible("#control-seed") and not page.is_visible("#step")
    hold_result = held(page, "**/result")
    release()
    wait_until(lambda: pixels(page) != image)  # the first outlines are those of a chain
    wait_until(lambda: page.inner_text("#caption").startswith("First outlines"))
    assert page.inner_text("#clusters").isdecimal()
    hold_result()
    run_until(page, 8)
    pause(page)
    wait_until(lambda: "Result at" in page.inner_text("#caption"))
    outlined = pixels(page)
    release = held(page, "**/settings")
    page.select_option("#preset", "measured")
    wait_until(lambda: pixels(page) not in (outlined, image))  # dimmed
    release()
    wait_until(lambda: stage(page) == 2)
    assert pixels(page) not in (outlined, image)
    page.click("#run")
    wait_until(lambda: "Result at" in page.inner_text("#caption"))
    page.hover("#canvas", position={"x": 400, "y": 200})
    wait_until(lambda: re.fullmatch(r"Region \d+ of \d+ by size, .* % of the image", page.inner_text("#value")))
    page.check("#boundaries")
    page.hover("#canvas", position={"x": 410, "y": 200})
    wait_until(lambda: page.inner_text("#value").startswith("Boundary probability: "))
    assert page.inner_text("#clusters").isdecimal()  # still those of the result


def test_it_stops_once_converged_keeps_sampling_if_asked_and_says_that_an_export_is_prepared(opened, tmp_path):
    halves = np.zeros((60, 80, 3), np.uint8)
    halves[:, 40:] = 200
    Image.fromarray(halves).save(tmp_path / "halves.png")
    page = opened("#preset=photo")
    page.set_input_files("#file", tmp_path / "halves.png")
    page.wait_for_selector('body[data-enough="true"][data-state="paused"]')
    n_sweeps = sweeps(page)
    wait_until(lambda: "have converged" in page.inner_text("#verdict"))
    assert page.inner_text("#run") == "Keep sampling"
    primary = "(buttons) => buttons.map((button) => button.id)"
    assert page.locator("#run-bar .primary").evaluate_all(primary) == ["export"]
    assert page.is_disabled("#cutout") and page.inner_text("#cutout-note") == "Click a region first"
    page.click("#canvas")
    page.click("#legend-close")
    with page.expect_download() as coming:
        page.click("#cutout")
    alpha = np.asarray(Image.open(coming.value.path()))[..., 3]
    assert alpha.shape == (60, 80) and set(np.unique(alpha)) == {0, 255}
    page.click("#run")
    wait_until(lambda: sweeps(page) > n_sweeps)
    assert page.locator("#run-bar .primary").evaluate_all(primary) == ["run"]
    release = held(page, "**/export/*")
    with page.expect_download() as coming:
        page.click('[data-export="labels.png"]')
        wait_until(lambda: "Preparing labels.png" in page.inner_text("#export-note"))
        assert page.is_disabled('[data-export="report.html"]')
        release()
    assert np.asarray(Image.open(coming.value.path())).max() == 2 == int(page.inner_text("#clusters"))
    wait_until(lambda: "Preparing" not in page.inner_text("#export-note"))


def test_it_says_that_it_has_converged_once_the_final_result_is_displayed(opened, server, small):
    page = opened("#preset=photo")
    release = held(page, "**/result")
    with page.expect_request("**/events") as coming:
        page.set_input_files("#file", small)
    session = urlsplit(coming.value.url).path.removesuffix("/events")
    with Listener(server, session) as listener:
        frame = listener.wait_for(lambda frame: frame["state"] == "paused" and frame["sweeps"])
    assert frame["agreement"]["enough"]
    wait_until(lambda: sweeps(page) == frame["sweeps"] and page.get_attribute("body", "data-outlined"))
    status, headline, button, _ = states(page)
    assert (page.get_attribute("body", "data-state"), button) == ("running", "Pause")
    assert status == "Sampling." and headline != frame["agreement"]["headline"]
    shown = """() => {
        if (document.body.dataset.state !== "paused") return null;
        return ["clusters", "status", "verdict-headline", "run"].map((id) => document.getElementById(id).textContent);
    }"""
    release()
    regions, status, headline, button = page.wait_for_function(shown).json_value()
    result = server.ask("GET", f"{session}/result").json
    assert int(regions) == result["n_regions"] and result["sweeps"] == frame["sweeps"]
    assert status.endswith(f"after {frame['sweeps']} sweeps.") and headline == frame["agreement"]["headline"]
    assert button == "Keep sampling"
    page.click("#canvas", position={"x": 200, "y": 100})
    page.click("#legend-close")
    assert page.inner_text("#clusters") == regions


def test_a_result_that_is_displayed_stays_until_there_is_a_newer_one(opened):
    page = opened("#preset=photo")
    page.evaluate("""() => {
        window.shown = [];
        const note = () => window.shown.push(document.getElementById("clusters").textContent);
        new MutationObserver(note).observe(document.getElementById("clusters"), {childList: true, characterData: true});
    }""")
    page.click('.example[data-name="astronaut"]')
    page.wait_for_selector('body[data-enough="true"][data-state="paused"]')
    assert all(text.isdecimal() for text in page.evaluate("window.shown"))


def test_it_says_what_auto_chose_and_takes_its_level_of_detail(opened, tmp_path):
    rows, columns = np.mgrid[:100, :140]
    discs = (rows % 25 - 12) ** 2 + (columns % 28 - 14) ** 2 < 80
    rng = np.random.default_rng(0)
    Image.fromarray((40 + 120 * discs + 8 * rng.normal(size=discs.shape)).clip(0, 255).astype(np.uint8)).save(
        tmp_path / "cells.png"
    )
    page = opened("#speed=5")
    page.set_input_files("#file", tmp_path / "cells.png")
    run_until(page, 1)
    page.wait_for_function("() => document.getElementById('preset-about').textContent.startsWith('For this image: ')")
    chosen = page.inner_text("#preset-about").split()[3].rstrip(".")
    assert chosen == ss.segment(tmp_path / "cells.png", sweeps=4, rng=0).preset.name == "measured"
    assert float(page.input_value("#control-detail")) == Preset.known[chosen]().detail


def test_back_leads_from_an_image_to_the_start_and_forward_to_the_image(opened, small):
    page = opened("#preset=photo&chains=1&speed=5")
    page.set_input_files("#file", small)
    run_until(page, 1)
    page.go_back()
    page.wait_for_selector("#welcome", state="visible")
    page.wait_for_selector('body[data-state="paused"]')
    page.go_forward()
    page.wait_for_selector("#work", state="visible")
    page.wait_for_selector('body[data-state="running"]')
    assert "preset=photo" in page.evaluate("location.href")
    page.click("#another")
    page.click('.example[data-name="cat"]')
    wait_until(lambda: "cat.jpg" in page.inner_text("#picture-name"))
    page.go_back()
    page.wait_for_selector("#welcome", state="visible")
    page.click("#back")
    page.wait_for_selector("#work", state="visible")
    wait_until(lambda: "example=cat" in page.evaluate("location.href"))
    page.go_back()
    page.wait_for_selector("#welcome", state="visible")
    page.go_back()  # to what was there before "Another image"
    page.wait_for_selector("#work", state="visible")
    wait_until(lambda: "small.png" in page.inner_text("#picture-name"))
    run_until(page, 1)


@exhaustive
def test_the_row_of_details_of_a_report_needs_no_script(browser, tmp_path):
    image = np.asarray(Image.open(PICTURES["coffee"].path).resize((90, 60)))
    ss.segment(image, sweeps=4, rng=0).save(tmp_path, ["report.html"])
    page = browser.new_context(viewport=DESKTOP, java_script_enabled=False).new_page()
    page.goto((tmp_path / "report.html").as_uri())

    def shown():
        """The numbers of the positions whose outlines are seen, and of those whose captions are."""
        parts = (page.locator(f".{part}:visible").all() for part in ("layer", "caption"))
        return [[int(part.get_attribute("class").split()[1][1]) for part in each] for each in parts]

    assert shown() == [[3], [3]]
    before = page.locator(".stage .frame").screenshot()
    page.focus("#d3")
    for i in (4, 5):
        page.keyboard.press("ArrowRight")
        assert shown() == [[i], [i]] and page.is_checked(f"#d{i}")
    assert page.locator(".stage .frame").screenshot() != before
    page.uncheck("#outlines")
    assert shown() == [[], [5]]
    page.emulate_media(media="print")
    assert shown() == [[3], [3]] and not page.is_visible("#d5")  # the one that the rest of the report is about
    page.emulate_media(media="screen")
    page.check("#outlines")
    page.click("label[for=d0]")
    assert shown() == [[0], [0]] and not page.is_visible(".answers img >> nth=0")
    page.click(".answers summary")
    assert page.locator(".answers img").count() == 10 and page.is_visible(".answers img >> nth=9")
    page.context.close()


@exhaustive
def test_a_click_shows_the_probability_map_of_a_place_and_escape_closes_it(opened):
    page = opened("#example=cat&speed=20")
    run_until(page, 8)
    pause(page)
    before = pixels(page)
    page.click("#canvas", position={"x": 300, "y": 200})
    page.wait_for_selector("#legend", state="visible")
    wait_until(lambda: pixels(page) != before)
    mapped = pixels(page)
    page.keyboard.press("Escape")
    page.wait_for_selector("#legend", state="hidden")
    wait_until(lambda: pixels(page) != mapped)  # outlines may have been refined meanwhile
    before = pixels(page)
    page.check("#boundaries")
    page.wait_for_selector("#legend", state="visible")
    wait_until(lambda: pixels(page) != before)
    page.uncheck("#boundaries")
    contents = {before}
    for view in ("fill", "means", "picture"):
        page.check(f"[name=view][value={view}]", force=True)
        wait_until(lambda: pixels(page) not in contents)
        contents.add(pixels(page))
    page.check("[name=view][value=outlines]", force=True)
    show_advanced(page)
    page.check("#spins")
    wait_until(lambda: pixels(page) not in contents)


def test_the_controls_are_those_of_the_preset_and_the_prior(opened):
    page = opened("#example=cat&n_sites=60&speed=1&chains=1")
    run_until(page, 1)
    assert page.is_visible("#control-seed")  # a link with such settings opens what is advanced
    for preset, prior in zip(Preset.known, ("preset", "FiniteDirichlet", "PitmanYor"), strict=False):
        page.select_option("#preset", preset)
        page.select_option("#prior", prior)
        shown = {name for name in controls() if page.locator(f"#control-{name}").is_visible()}
        assert shown == {name for name, control in controls().items() if control.applies(preset, prior)}
        for name, value in Preset.known[preset].options().items():
            if name in shown and isinstance(usual := getattr(Preset.known[preset](), name), float):
                assert float(page.input_value(f"#control-{name}")) == usual, value
        wait_until(lambda: page.is_visible("#scribble-row") == Preset.known[preset].connected)  # noqa: B023


@exhaustive
def test_after_a_change_chains_continue_or_restart_and_the_link_restores_the_settings(opened, address):
    page = opened("#example=coffee&preset=paper&n_sites=300")
    run_until(page, 5)
    page.select_option("#prior", "PitmanYor")
    page.wait_for_selector('body[data-stage="2"]')
    assert page.is_visible("#control-discount") and not page.is_visible("#control-n_labels")
    page.fill("#control-concentration", "7")
    page.keyboard.press("Enter")
    page.wait_for_selector('body[data-stage="3"]')
    page.fill("#control-seed", "5")
    page.keyboard.press("Enter")
    page.wait_for_selector('body[data-stage="4"]')
    run_until(page, 2)
    for part in ("example=coffee", "preset=paper", "prior=PitmanYor", "concentration=7", "seed=5", "n_sites=300"):
        assert part in page.url
    again = opened(page.url.removeprefix(address))
    run_until(again, 2)
    values = [again.input_value(f"#{name}") for name in ("preset", "prior", "control-concentration", "control-seed")]
    assert values == ["paper", "PitmanYor", "7", "5"]


def test_a_file_that_is_no_image_gets_one_sentence(opened, tmp_path):
    wrong = tmp_path / "notes.png"
    wrong.write_text("<script>alert(1)</script>")
    page = opened()
    page.set_input_files("#file", wrong)
    page.wait_for_selector("#error", state="visible")
    assert "cannot be opened as an image. Choose a PNG" in page.inner_text("#error")
    assert "/tmp" not in page.inner_text("#error")
    assert all("415" in line for line in opened.messages)  # the browser logs the status, too
    opened.messages.clear()


@exhaustive
def test_the_page_says_how_a_file_was_read_and_what_to_try(opened, tmp_path):
    square = np.zeros((60, 80))
    square[15:45, 20:60] = 0.01
    np.save(tmp_path / "stack.npy", np.stack([square] * 5))
    page = opened()
    page.set_input_files("#file", tmp_path / "stack.npy")
    page.wait_for_selector("#error", state="visible")
    assert "a volume of 5 planes" in page.inner_text("#error")
    page.click("#reading-options summary")
    page.select_option("#channel-axis", "0")
    page.set_input_files("#file", tmp_path / "stack.npy")
    page.wait_for_selector("#work", state="visible")
    show_advanced(page)
    assert page.inner_text("#read-as").startswith("Read as 5 channels of 80 x 60 pixels")
    np.save(tmp_path / "gray.npy", square)
    page = opened("#preset=photo")
    page.set_input_files("#file", tmp_path / "gray.npy")
    page.wait_for_selector("#warning", state="visible")
    assert "Try the black and white levels 0 and 0.0" in page.inner_text("#warning")
    opened.messages.clear()  # the browser logs the status of the refusal


@exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_needs_no_horizontal_scrolling(opened, scheme):
    page = opened("#example=astronaut&speed=5", PHONE, color_scheme=scheme, has_touch=True)
    run_until(page, 1)
    width = page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    box = page.locator("#run").bounding_box()
    assert box["y"] + box["height"] <= PHONE["height"] and min(box["width"], box["height"]) >= 40
    tops = [page.locator(f"#{name}").bounding_box()["y"] for name in ("canvas", "preset", "export-section", "advanced")]
    assert tops[0] < 300 and tops == sorted(tops)
    measured = "(labels) => labels.map((label) => label.getBoundingClientRect().toJSON())"  # all at one moment
    boxes = page.locator("#scribble-row label").evaluate_all(measured)
    assert len(boxes) == 7 and min(min(box["width"], box["height"]) for box in boxes) >= 40
    assert len({box["y"] for box in boxes}) == 1 and not page.is_visible("#scribble-undo")


def draw(page, color, places):
    """Draw a stroke through places, given as shares of the width and height of the canvas."""
    page.check(f'input[name="scribble"][value="{color}"]', force=True)
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in places]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=5)
    page.mouse.up()


def states(page):
    """What says the state of the chains, at one moment."""
    return page.evaluate(
        "() => [...['status', 'verdict-headline', 'run'].map((id) => document.getElementById(id).textContent),"
        " document.getElementById('export').disabled]"
    )


def test_nothing_is_said_of_chains_whose_posterior_is_about_to_change(opened, small):
    page = opened("#preset=photo&chains=1")
    page.set_input_files("#file", small)
    run_until(page, 8)
    pause(page)
    wait_until(lambda: "Result at" in page.inner_text("#caption"))
    assert states(page)[2:] == ["Continue", False]
    release = held(page, "**/settings")
    hold_first = held(page, "**/conditioned")
    draw(page, 1, [(0.4, 0.4), (0.5, 0.5)])
    wait_until(lambda: states(page)[0] == "Applying the change.")
    assert states(page)[3] and page.is_disabled("#ten")
    hold_first()
    release()
    wait_until(lambda: stage(page) == 2 and states(page)[0] != "Applying the change.")
    assert states(page)[2] == "Start"  # after a pause by hand


def test_once_all_scribbles_are_undone_the_result_and_the_code_are_those_of_before(opened, small):
    page = opened("#preset=photo&chains=1")
    page.set_input_files("#file", small)
    run_until(page, 8)
    pause(page)
    show_advanced(page)
    page.click("#repeat-section summary")

    def shown():
        return pixels(page), *(page.inner_text(f"#{name}") for name in ("clusters", "caption", "sweeps", "python"))

    wait_until(lambda: "Result at" in page.inner_text("#caption") and "sweeps=" in page.inner_text("#python"))
    before = shown()
    for n, places in enumerate([[(0.4, 0.3), (0.6, 0.7)], [(0.45, 0.85), (0.6, 0.9)]], 2):
        draw(page, 1, places)
        wait_until(lambda: stage(page) == n)  # noqa: B023
        page.click("#step")
        wait_until(lambda: sweeps(page) == 1 and page.inner_text("#python").count("seeds=") == n - 1)  # noqa: B023
    page.check('input[name="scribble"][value="0"]', force=True)
    for button in ("#scribble-undo", "#scribble-undo"):
        page.click(button)
    wait_until(lambda: shown() == before)


def test_a_stroke_that_crosses_another_color_is_removed_and_scribbles_are_not_lost_by_reloading(opened, small):
    page = opened("#preset=photo&chains=1&speed=5")
    page.set_input_files("#file", small)
    run_until(page, 1)
    page.wait_for_selector("#scribble-row", state="visible")
    draw(page, 1, [(0.4, 0.4), (0.6, 0.6)])
    wait_until(lambda: stage(page) == 2)
    draw(page, 2, [(0.4, 0.6), (0.6, 0.4)])
    page.wait_for_selector("#error", state="visible")
    assert page.inner_text("#error").endswith("must not cross or touch. The last stroke was removed.")
    page.hover("#canvas")
    assert page.is_visible("#error") and stage(page) == 2
    draw(page, 1, [(0.4, 0.6), (0.6, 0.4)])  # of the same color
    wait_until(lambda: stage(page) == 3 and not page.is_visible("#error"))
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == ["beforeunload"]
    page.wait_for_selector("#welcome", state="visible")
    page.reload()  # without scribbles nothing is asked
    assert asked == ["beforeunload"]


def test_words_for_a_finger(opened):
    page = opened(size=PHONE, has_touch=True, is_mobile=True)
    wait_until(lambda: page.inner_text("#invitation") == "Choose an image")  # the page has words for a mouse at first
    assert "paste" not in page.inner_text("#drop")
    page = opened()
    assert page.inner_text("#invitation") == "Drop an image here" and "paste" in page.inner_text("#drop")


@exhaustive
def test_scribbles_are_kept_by_the_chains_and_by_the_exports(opened):
    page = opened("#example=coffee")
    run_until(page, 5)
    pause(page)
    first = stage(page)
    before = pixels(page)
    draw(page, 1, [(0.45, 0.3), (0.5, 0.5), (0.42, 0.65)])
    assert pixels(page) != before
    wait_until(lambda: stage(page) == first + 1)
    assert sweeps(page) == 0 and "Result at detail" in page.inner_text("#caption")  # from the draws before
    draw(page, 2, [(0.3, 0.7), (0.45, 0.9)])
    wait_until(lambda: stage(page) == first + 2)
    show_advanced(page)
    page.click("#step")
    wait_until(lambda: sweeps(page) == 1)
    page.click("#repeat-section summary")
    wait_until(lambda: "seeds={1: [(" in page.inner_text("#python"))
    lines = page.inner_text("#python").splitlines()
    assert "seeds=" not in lines[1] and "2: [(" in lines[-1] and "init=found.chains.last_labels" in lines[-1]
    assert "--seeds" in page.inner_text("#repeat-note") and "seeds=" not in page.url
    page.click("#scribble-undo")
    wait_until(lambda: stage(page) == first + 3)
    page.click("#scribble-clear")
    wait_until(lambda: stage(page) == first + 4)
    assert page.is_disabled("#scribble-clear") and page.is_disabled("#scribble-undo")
    opened.messages[:] = [text for text in opened.messages if "409" not in text]  # no sweep yet: nothing to repeat


@exhaustive
def test_a_stroke_holds_the_sites_that_are_seen_under_it(opened):
    """Of a stroke through pixels that changed sides with the outlines, the others are sent."""
    page = opened("#example=coffee")
    with page.expect_response(lambda response: response.url.endswith("/outlines")) as coming:
        run_until(page, 5)
    pause(page)
    folder = coming.value.url.removesuffix("outlines")
    before, after = (
        np.frombuffer(page.request.get(folder + name).body(), "<i4").reshape(400, 600) for name in ("sites", "outlines")
    )
    rows, columns = np.nonzero(before != after)
    row, column = next((r, c) for r, c in zip(rows, columns, strict=True) if 20 < c < 580)
    box = page.locator("#canvas").bounding_box()
    zoom = min(box["width"] / 600, box["height"] / 400)
    left, top = (box["width"] - 600 * zoom) / 2, (box["height"] - 400 * zoom) / 2
    ends = [column - 15, column + 15]
    places = [((left + (c + 0.5) * zoom) / box["width"], (top + (row + 0.5) * zoom) / box["height"]) for c in ends]
    with page.expect_request(lambda request: request.url.endswith("/settings")) as sent:
        draw(page, 1, places)
    seeds = sent.value.post_data_json["seeds"]["1"]
    assert {r for r, _ in seeds} == {row} and all(ends[0] <= c <= ends[1] for _, c in seeds)
    assert all(before[r, c] == after[r, c] for r, c in seeds)
