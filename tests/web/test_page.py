"""The page of the service, in a real browser against the real service."""

import re
import shutil
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.posterior.diagnostics import FitWarning
from pseudomallows.show.page import plain, readable
from webhelp import Process

PAGE = Path(pm.__file__).parent / "web" / "page"
SCRIPTS = sorted(PAGE.glob("*.js"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WARM = ["tea", "milk", "cocoa", "coffee", "honey", "ginger"]
COLD = ["ale", "rum", "cider", "stout", "gin", "porter"]
HOSTILE = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    '"><svg onload="window.pwned = 1">',
    "' onfocus='window.pwned = 1' autofocus='",
    "javascript:window.pwned=1",
    "{{7*7}} ${7*7} &lt;b&gt; \u202egnirts \u0007 end",
    "long " + "x" * 4995,
    "__proto__",
    "constructor",
]
N_USERS, N_ITEMS, N_CLICKS = 60 + len(HOSTILE), 12 + len(HOSTILE), 180 + 2 * len(HOSTILE)
SILENT = "The service does not answer"
PATIENCE = 60_000  # milliseconds: on a busy machine anything may be slow


def clicks_of_all(n_users=60):
    """Those of two groups, and of a few odd users on items with hostile names."""
    rng, chosen = np.random.default_rng(5), {}
    for user in range(n_users):
        liked = WARM if user % 2 else COLD
        items = rng.choice(len(liked), 3, replace=False, p=falling(len(liked)))
        chosen[f"user {user}"] = [liked[item] for item in items]
    odd = {f"<b>odd {user}</b>": ["tea", item] for user, item in enumerate(HOSTILE)}
    return chosen | odd


def falling(size):
    weights = np.arange(size, 0, -1.0)
    return weights / weights.sum()


def save_model(folder, clicks, **options):
    prefs = pm.Preferences.from_clicks(clicks)
    path = folder / "model.pm"
    given = {"method": "pseudo", "alpha": 5.0, "n_draws": 60, "rng": 1} | options
    with warnings.catch_warnings(action="ignore", category=FitWarning):  # few draws
        pm.fit(prefs, **given).save(path)
    return path


def serving(model, *options):
    return Process(model, model.with_suffix(".sqlite"), *options)


def told_by(service, path):
    """The JSON of an answer."""
    return service.ask(f"/{path}")[1]


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    api.expect.set_options(timeout=PATIENCE)
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    pytest.importorskip("starlette", reason="the service is not installed")
    with api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("page"), clicks_of_all(), n_clusters=2)


@pytest.fixture(scope="module")
def service(browser, model):
    with serving(model) as found:
        yield found


@pytest.fixture
def own_service(browser, model, tmp_path):
    """One that a test may write to and kill."""
    shutil.copy(model, tmp_path / "model.pm")
    with serving(tmp_path / "model.pm") as found:
        yield found


@contextmanager
def opened(browser, service, view="start", troubled=False, **options):
    """A page; at the end: no error in the console, and no request to elsewhere.

    With `troubled`, the browser's own lines on answers that failed are allowed.
    """
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    console, elsewhere = [], []
    page.on("console", lambda line: console.append((line.type, line.text)))
    page.on("pageerror", lambda error: console.append(("error", str(error))))
    page.on("dialog", lambda dialog: (console.append(("error", "a dialog")), dialog.dismiss()))

    def note(request):
        if not request.url.startswith((f"{service.url}/", "data:", "blob:")):
            elsewhere.append(request.url)

    page.on("request", note)
    try:
        page.goto(f"{service.url}/#{view}")
        yield page
    finally:
        context.close()
    wrong = [text for kind, text in console if kind in ("error", "warning")]
    if troubled:
        wrong = [text for text in wrong if not text.startswith("Failed to load resource")]
    assert wrong == []
    assert elsewhere == []


def expect(locator):
    from playwright.sync_api import expect as wanted

    return wanted(locator)


def pick(page, words):
    page.fill("#search", words)
    page.locator("#options .active").wait_for()
    page.press("#search", "Enter")


def texts(page, selector):
    """Of what is there now: for what an action draws, wait with `expect_texts` or `expect`."""
    return page.locator(selector).all_inner_texts()


def expect_texts(page, selector, wanted):
    expect(page.locator(selector)).to_have_text(wanted, use_inner_text=True)


def short(name):
    """An item as a list of the page shows it."""
    return plain(readable(name), 60)


def give(page, text, name="clicks.csv"):
    data = text if isinstance(text, bytes) else text.encode()
    file = {"name": name, "mimeType": "text/csv", "buffer": data}
    page.set_input_files("#file", file)


def as_csv(clicks):
    lines = [f"{user},{item}" for user, items in clicks.items() for item in items]
    return "\n".join(["user,item", *lines, ""])


# The files, without a browser


def test_the_page_holds_no_inline_script_or_style_and_no_address_elsewhere():
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html)
    assert re.findall(r"<script[^>]*>[^<]*", html) == [
        '<script type="module" src="static/main.js">'
    ]
    for path in PAGE.iterdir():
        found = re.findall(r"https?://[^\"'\s)]+", path.read_text(encoding="utf-8"))
        assert set(found) <= {"http://www.w3.org/2000/svg"}, path.name


def test_text_never_becomes_html():
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    ways += r"|DOMParser|createContextualFragment|setHTML|[\"']style[\"']"
    for path in SCRIPTS:
        assert not re.search(ways, path.read_text(encoding="utf-8")), path.name


def test_what_the_scripts_ask_for_is_in_the_page():
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    there = set(re.findall(r'\sid="([^"]+)"', html)) | {"cursor"}  # drawn with the heat plot
    for path in SCRIPTS:
        asked = set(re.findall(r'byId\("([^"$]+)"\)', path.read_text(encoding="utf-8")))
        assert asked <= there, (path.name, asked - there)


def brightness(colour):
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one, other):
    dark, light = sorted([brightness(one), brightness(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_that_readers_need(scheme):
    css = (PAGE / "style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+)", blocks[scheme]))
    for ground in ("page", "card", "hover", "trouble"):
        for ink in ("ink", "soft", "accent"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for ink in ("yes", "care", "no"):
        assert contrast(colours[ink], colours["card"]) >= 4.5, ink
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    assert contrast(colours["accent"], colours["track"]) >= 3


# A person's way through the views


def test_a_person_sees_the_model_tries_it_and_reads_the_consensus(browser, service):
    with opened(browser, service) as page:
        expect(page.locator("h1:visible")).to_have_text(f"What {N_USERS} users prefer")
        expect(page.locator("#knows")).to_contain_text(f"{N_CLICKS} clicks on {N_ITEMS} items")
        expect(page.locator("#trusted")).to_have_text(re.compile("yes|with care|no"))
        expect(page.locator("#clusters .card")).to_have_count(2)
        shown = texts(page, "#clusters .best li:first-child")
        assert len(set(shown) & set(WARM)) == len(set(shown) & set(COLD)) == 1

        page.click("nav a[href='#try']")
        expect(page).to_have_title(re.compile("^Try it"))
        pick(page, "TE")  # tea, by part of its name; upper or lower case
        expect(page.locator("#recommendations li")).to_have_count(10)
        answer = told_by(service, "items?search=te")
        expect_texts(page, "#chips bdi", [answer["items"][0]["item"]])
        assert texts(page, "#recommendations .row bdi")[0] in WARM
        expect(page.locator("#close li").first).to_contain_text("%")

        page.click("nav a[href='#consensus']")
        expect(page.locator("#heat-names li")).to_have_count(N_ITEMS)
        told = told_by(service, "consensus?cluster=0")
        names = [row["item"] for row in told["items"]]
        assert texts(page, "#heat-names bdi")[:5] == names[:5]
        page.hover("#cells", position={"x": 2, "y": 2})
        first = f"{names[0]}, rank 1: "
        expect(page.locator("#readout")).to_contain_text(first)
        page.select_option("#cluster", "1")
        other = told_by(service, "consensus?cluster=1")["items"][0]["item"]
        expect(page.locator("#heat-names bdi").first).to_have_text(other)


def test_a_personal_model_has_no_consensus_to_show(browser, tmp_path):
    clicks = pm.Preferences.from_clicks(clicks_of_all())
    fit = pm.fit(clicks, "personal", rng=1)
    found = pm.evaluate(clicks, 1, 2, rng=1)
    found.keep_in(fit)
    fit.save(tmp_path / "m.pm")
    with serving(tmp_path / "m.pm") as service:
        most = [row["item"] for row in told_by(service, "items?limit=5")["items"]]
        with opened(browser, service) as page:
            expect(page.locator("#knows")).to_contain_text("an order of preference for each user")
            expect(page.locator("#clusters h2")).to_have_text("At a glance")
            expect(page.locator("#clusters circle")).to_have_count(len(found.calibration.counts))
            expect(page.locator("#why")).to_contain_text(found.verdict.words[:60])
            expect_texts(page, "#clusters bdi", most)
            expect(page.locator("#to-consensus")).to_be_hidden()
            page.click("nav a[href='#try']")
            pick(page, "tea")
            expect(page.locator("#recommendations li")).to_have_count(10)
            expect(page.locator("#recommendations .why").first).to_contain_text("tea (")
            expect(page.locator("#close-part")).to_be_hidden()
            page.click("nav a[href='#consensus']")
            expect(page.locator("#consensus-words")).to_contain_text(
                "there is no consensus to show"
            )
            expect(page.locator("#heat-part")).to_be_hidden()
            page.click("nav a[href='#upload']")
            expect(page.locator("#n-clusters-part")).to_be_hidden()


def test_a_personal_model_is_shown_before_its_consensus_is_learnt(browser, tmp_path):
    rng = np.random.default_rng(1)
    chosen = {f"u{user}": rng.choice(30, 8, replace=False).tolist() for user in range(80)}
    pm.fit(pm.Preferences.from_clicks(chosen), rng=1).save(tmp_path / "m.pm")
    asked = []
    with serving(tmp_path / "m.pm") as service:
        assert told_by(service, "model")["n_clusters"] == 1
        with opened(browser, service) as page:
            page.on("request", lambda request: asked.append(request.url.split("/")[-1]))
            page.reload()
            expect(page.locator("#knows")).to_contain_text("an order of preference for each user")
            assert "model" in asked
            assert "clusters" not in asked
            page.click("nav a[href='#consensus']")
            expect(page.locator("#consensus-words")).to_contain_text("the consensus of all users")
            expect(page.locator("#heat-names bdi")).to_have_count(30)


def test_the_address_leads_to_a_view_and_back(browser, service):
    with opened(browser, service, "consensus/2") as page:
        expect(page.locator("#cluster")).to_have_value("1")  # the service counts from 0
        expect(page.locator("#cluster option:checked")).to_contain_text("2 (")
        page.click("nav a[href='#upload']")
        expect(page.locator("#upload-title")).to_be_focused()
        expect(page.locator("nav a[aria-current=page]")).to_have_text("Upload")
        page.go_back()
        expect(page.locator("#view-consensus")).to_be_visible()
        page.goto(f"{service.url}/#nowhere")
        expect(page.locator("#view-start")).to_be_visible()


def test_try_it_by_keyboard_alone(browser, service):
    with opened(browser, service, "try") as page:
        page.locator("#popular li").first.wait_for()
        keys = page.keyboard
        for _ in range(20):
            keys.press("Tab")
            if page.evaluate("document.activeElement.id") == "search":
                break
        expect(page.locator("#search")).to_be_focused()
        keys.press("ArrowDown")
        expect(page.locator("#options [role=option]")).to_have_count(20)
        expect(page.locator("#search")).to_have_attribute("aria-expanded", "true")
        keys.press("ArrowDown")
        keys.press("ArrowDown")
        expect(page.locator("#search")).to_have_attribute("aria-activedescendant", "option-1")
        second = page.locator("#option-1 bdi").inner_text()
        keys.press("Enter")
        expect_texts(page, "#chips bdi", [second])
        expect(page.locator("#options")).to_be_hidden()
        expect(page.locator("#recommendations li")).to_have_count(10)

        keys.type("gin")
        page.locator("#options .active").wait_for()
        keys.press("Escape")
        expect(page.locator("#options")).to_be_hidden()
        expect(page.locator("#search")).to_have_value("gin")
        keys.press("Escape")
        expect(page.locator("#search")).to_have_value("")
        for word in ("ginger", "porter"):
            keys.type(word)
            expect(page.locator("#options .active bdi")).to_have_text(word)
            keys.press("Enter")
        expect_texts(page, "#chips bdi", [second, "ginger", "porter"])

        keys.press("Backspace")  # in an empty box: to the last click
        expect(page.locator("#chips button").last).to_be_focused()
        keys.press("ArrowLeft")
        keys.press("Delete")
        expect_texts(page, "#chips bdi", [second, "porter"])
        expect(page.locator("#chips button").last).to_be_focused()
        keys.press("Enter")  # a button: removes too
        expect_texts(page, "#chips bdi", [second])
        keys.press("Backspace")
        expect(page.locator("#search")).to_be_focused()
        expect(page.locator("#recommendations")).to_be_hidden()
        expect(page.locator("#try-news")).to_have_text(f"{second} removed.")


def test_the_heat_plot_is_read_by_keyboard_and_as_a_table(browser, service):
    with opened(browser, service, "consensus/1") as page:
        page.locator("#cells svg").wait_for()
        told = told_by(service, "consensus?cluster=0")
        page.focus("#heat")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "End", "ArrowRight", "ArrowUp"):
            page.keyboard.press(key)
        words = re.escape(f"{told['items'][1]['item']}, rank {N_ITEMS}: ")
        expect(page.locator("#readout")).to_have_text(re.compile(f"^{words}"))
        expect(page.locator("#cursor")).to_have_attribute("y", "1")
        page.click("text=The same as a table")
        rows = page.locator("#rows tr")
        expect(rows).to_have_count(N_ITEMS)
        expect(rows.first).to_be_visible()
        for row, item in zip(texts(page, "#rows tr")[:5], told["items"][:5], strict=True):
            assert row.split("\t")[:2] == [str(item["rank"]), item["item"]]


def test_a_click_on_a_recommendation_makes_it_one_of_yours(browser, service):
    with opened(browser, service, "try") as page:
        page.click("#popular button >> nth=0")
        first = page.locator("#recommendations .row bdi").first.inner_text()
        page.locator("#recommendations button").first.click()
        expect(page.locator("#chips li")).to_have_count(2)
        expect(page.locator("#chips bdi").last).to_have_text(first)
        expect(
            page.locator("#recommendations .row bdi", has_text=re.compile(f"^{first}$"))
        ).to_have_count(0)
        page.click("#clear")
        expect(page.locator("#no-picks")).to_be_visible()


def test_the_bars_show_what_the_service_said(browser, service):
    with opened(browser, service, "try") as page:
        with page.expect_response("**/recommend") as seen:
            pick(page, "tea")
        rows = seen.value.json()["recommendations"]
        expect_texts(page, "#recommendations .row bdi", [short(row["item"]) for row in rows])
        for row, why in zip(rows, texts(page, "#recommendations .why"), strict=True):
            told = [each for each in row["reasons"] if abs(each["share"]) >= 0.05][:3]
            assert all(f"cluster {int(each['name']) + 1} (" in why.lower() for each in told)
        shares = page.locator("#recommendations .fill").evaluate_all(
            "fills => fills.map(fill => Number(fill.style.getPropertyValue('--share')))"
        )
        probabilities = np.array([row["probability"] for row in rows])
        np.testing.assert_allclose(
            np.divide(shares, shares[0]), probabilities / probabilities[0], rtol=1e-6
        )


def test_names_in_capitals_are_written_as_the_report_writes_them(browser, service):
    names = [
        "WHITE HANGING HEART T-LIGHT HOLDER",
        "iPhone 4",
        "USB",
        "3D PUZZLES",
        "6 RIBBONS, RED",
    ]
    names += ["ÉCLAIRS À LA CRÈME", "PAPER CHAIN KIT 50'S", "12345678", *HOSTILE[:5]]
    with opened(browser, service) as page:
        words = (
            "names => import('/static/dom.js').then(dom => names.map(name => dom.readable(name)))"
        )
        assert page.evaluate(words, names) == [plain(readable(name)) for name in names]


def test_a_user_is_looked_up_by_name(browser, service):
    with opened(browser, service, "try", troubled=True) as page:
        page.fill("#user", "user 3")
        page.press("#user", "Enter")
        told = told_by(service, "users/user%203/recommendations?k=10")["recommendations"]
        expected = [short(row["item"]) for row in told]
        expect_texts(page, "#recommendations .row bdi", expected)
        expect(page.locator("#next-title")).to_have_text("What comes next for user 3")
        expect(page).to_have_url(re.compile("#try/user%203$"))
        page.reload()
        expect(page.locator("#recommendations li")).to_have_count(len(told))
        expect(page.locator("#popular li").first).to_be_visible()
        page.fill("#user", "<b>nobody/%</b>")
        page.click("#look-up button")
        expect(page.locator("#try-trouble")).to_contain_text("No user is named '<b>nobody/%</b>'")
        expect(page.locator("#recommendations")).to_be_hidden()
        pick(page, "tea")  # and back to picks of one's own
        expect(page.locator("#next-title")).to_have_text("What comes next")
        expect(page.locator("#try-trouble")).to_be_empty()
        expect(page.locator("#user")).to_have_value("")


def test_a_request_is_tried_in_the_description(browser, service):
    with opened(browser, service, "start", troubled=True) as page:
        page.goto(f"{service.url}/docs")
        address = page.locator("details", has=page.get_by_text("POST /recommend", exact=True))
        address.locator("summary").click()
        expect(address.locator("textarea")).not_to_have_value(
            re.compile("an item")
        )  # but real ones
        address.get_by_role("button").click()
        expect(address.locator("output strong")).to_have_text("200 OK")
        expect(address.locator("output pre").last).to_contain_text('"probability": 0.')
        address = page.locator("details", has=page.get_by_text("GET /users/{user}/rec"))
        address.locator("summary").click()
        address.get_by_label("user").fill("<b>nobody</b>")
        address.get_by_role("button").click()
        expect(address.locator("output strong")).to_have_text("404 Not Found")
        expect(address.locator("output pre").first).to_contain_text("curl 'http")
        for name in page.locator("input, textarea").evaluate_all("all => all.map(one => one.id)"):
            assert page.locator(f"label[for='{name}']").count() == 1


def test_how_many_probabilities_came_true_is_told_in_words_and_bars(browser, service):
    with opened(browser, service) as page:
        words = page.locator("#came-true-words")
        expect(words).to_contain_text("Nothing new to check against yet")
        expect(page.locator("#came-true-picture")).to_be_hidden()
        later = as_csv({f"user {user}": WARM if user % 2 else COLD for user in range(40)})
        assert service.ask("/upload?refit=false", later.encode())[0] == 202
        page.click("nav a[href='#try']")
        page.click("nav a[href='#start']")  # it asks again
        expect(words).to_contain_text("to 40 users")
        told = told_by(service, "check")
        expect(words).to_have_text(told["words"])
        rows = [f"Stated\n{100 * told['stated']:.1f}", f"Observed\n{100 * told['observed']:.1f}"]
        shown = [text.replace("\u00a0%", "") for text in texts(page, "#came-true-bars li")]
        assert shown == rows
        shares = page.locator("#came-true-bars .fill").evaluate_all(
            "fills => fills.map(fill => Number(fill.style.getPropertyValue('--share')))"
        )
        assert shares[0] / shares[1] == pytest.approx(told["stated"] / told["observed"])
        expect(page.locator("#came-true-scale")).to_contain_text("Both bars start at 0")


def test_a_late_answer_to_an_old_question_is_dropped(browser, service):
    with opened(browser, service, "try") as page:
        page.locator("#popular li").first.wait_for()
        held = []

        def hold_the_first(route):
            if held:
                route.continue_()
            else:
                held.append(route)

        page.route("**/recommend", hold_the_first)
        with page.expect_request("**/recommend"):
            pick(page, "tea")
        while not held:
            page.wait_for_timeout(20)
        pick(page, "rum")
        expect(page.locator("#recommendations li")).to_have_count(10)
        late = {"recommendations": [{"item": "too late", "probability": 1}], "memberships": None}
        held[0].fulfill(json=late)
        page.wait_for_timeout(200)
        assert "too late" not in page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(browser, service, scheme):
    phone = {"width": 390, "height": 844}
    with opened(browser, service, viewport=phone, color_scheme=scheme) as page:
        page.locator("#clusters .card").first.wait_for()
        dark = (
            page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        )
        assert dark == (scheme == "dark")
        for view in ("start", "try", "consensus", "upload"):
            page.click(f"nav a[href='#{view}']")
            expect(page.locator(f"#view-{view}")).to_be_visible()
            if view == "try":
                pick(page, "tea")
                page.locator("#recommendations li").first.wait_for()
            if view == "consensus":
                page.locator("#cells svg").wait_for()
                page.click("text=The same as a table")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, view


def test_nothing_moves_for_those_who_want_no_motion(browser, service):
    with opened(browser, service, reduced_motion="reduce") as page:
        page.locator("#clusters .fill").first.wait_for()
        ask = "getComputedStyle(document.querySelector('.fill')).transitionProperty"
        assert page.evaluate(ask) == "none"


# Text from strangers


def test_hostile_names_are_text_and_run_nothing(browser, service):
    phone = {"width": 390, "height": 844}
    with opened(browser, service, troubled=True, viewport=phone) as page:
        page.locator("#clusters .card").first.wait_for()
        usual = page.evaluate("document.querySelectorAll('script, img, svg').length")
        page.goto(f"{service.url}/#consensus/1")
        expect(page.locator("#heat-names li")).to_have_count(N_ITEMS)
        page.click("text=The same as a table")
        assert set(HOSTILE[:2]) <= set(texts(page, "#heat-names bdi"))
        assert set(HOSTILE[:2]) <= set(texts(page, "#rows bdi"))
        page.goto(f"{service.url}/#try")
        for item in HOSTILE[:7]:
            page.fill("#search", item[:30])
            page.press("#search", "Enter")  # before the list is there: its first is picked
            expect(page.locator("#options")).to_be_hidden()
            expect(page.locator("#search")).to_have_value("")
        expect(page.locator("#try-trouble")).to_contain_text("300")  # letters that a name may have
        shown = texts(page, "#chips bdi")
        assert len(shown) == 7
        assert shown[0] == HOSTILE[0]
        assert shown[1] == HOSTILE[1]
        assert shown[5].endswith("gnirts end")  # neither turned round nor with a bell
        assert len(shown[6]) <= 40
        page.locator("#chips button").nth(6).click()  # the long one
        page.locator("#recommendations li").first.wait_for()
        expect(page.locator("#try-trouble")).to_be_empty()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("window.pwned") is None
        now = page.evaluate("document.querySelectorAll('script, img, svg').length")
        assert now == usual + 1  # the heat plot


def test_words_of_an_error_are_text(browser, service):
    with opened(browser, service, "try", troubled=True) as page:
        page.locator("#popular li").first.wait_for()
        words = "<img src=x onerror='window.pwned = 1'> is wrong"
        page.route("**/recommend", lambda route: route.fulfill(status=422, json={"error": words}))
        page.click("#popular button >> nth=0")
        expect(page.locator("#try-trouble")).to_contain_text(words)
        page.unroute("**/recommend")
        page.route("**/recommend", lambda route: route.fulfill(status=500, body="<b>oops"))
        page.click("#popular button >> nth=1")
        expect(page.locator("#try-trouble")).to_contain_text("status 500")
        assert page.evaluate("window.pwned") is None


# Upload


@pytest.mark.slow
def test_from_upload_to_recommendation(browser, own_service):
    service = own_service
    with opened(browser, service, "upload", accept_downloads=True) as page:
        expect(page.locator("#now-words")).to_contain_text("Model 1: 69 users, in 2 clusters")
        more = {f"new {user}": ["kefir", "tea", "milk"] for user in range(30)}
        give(page, as_csv(more))
        expect(page.locator("#job-words")).to_contain_text("90 clicks of 30 users on 3 items")
        expect(page.locator("#progress")).to_be_visible()
        expect(page.locator("#file")).to_be_disabled()
        expect(page.locator("#job-title")).to_have_text("A new model")
        expect(page.locator("#now-words")).to_contain_text("Model 2: 99 users")
        expect(page.locator("#now-words")).to_contain_text("22 items")

        with page.expect_download() as taken:
            page.click("text=Download recommendations")
        text = Path(taken.value.path()).read_text(encoding="utf-8")
        assert text.startswith("user,")
        assert "kefir" in text
        with page.expect_download() as taken:
            page.click("text=Download the report")
        assert Path(taken.value.path()).read_bytes().startswith(b"<!DOCTYPE html>")

        page.click("#job-words a[href='#try']")
        pick(page, "kefir")
        page.locator("#recommendations li").first.wait_for()
        assert texts(page, "#recommendations .row bdi")[0] in WARM


@pytest.mark.slow
def test_what_of_a_file_was_not_heeded_is_shown_to_the_end(browser, own_service):
    with opened(browser, own_service, "upload") as page:
        give(page, b"user,item,rating\nann,tea,1\nann,milk,5\n")
        expect(page.locator("#upload-trouble")).to_contain_text("'rating'")
        expect(page.locator("#job-title")).to_have_text("A new model")
        expect(page.locator("#upload-trouble")).to_contain_text("'rating'")


def test_a_file_that_is_no_list_of_clicks_shows_words(browser, service):
    with opened(browser, service, "upload", troubled=True) as page:
        page.locator("#now-words", has_text="Model").wait_for()
        for name, data in [
            ("photo.png", b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe\x00binary"),
            ("words.csv", b"hello, this is a letter\nand no table\n"),
            ("header.csv", b"user,item\n"),
            ("empty.csv", b""),
        ]:
            page.evaluate("document.getElementById('upload-trouble').replaceChildren()")
            give(page, data, name)
            trouble = page.locator("#upload-trouble .trouble")
            trouble.wait_for()
            assert len(trouble.inner_text()) > 10, name
            assert "Traceback" not in trouble.inner_text()
            assert "/" + "tmp" not in trouble.inner_text()
            expect(page.locator("#file")).to_be_enabled()
        assert told_by(service, "model")["model"] == 1


@pytest.mark.slow
def test_a_refit_is_cancelled(browser, own_service):
    with opened(browser, own_service, "upload") as page:
        page.locator("#now-words", has_text="Model 1").wait_for()
        give(page, as_csv({"eve": ["tea", "rum"]}))
        page.locator("#job-words", has_text="2 clicks of 1 user").wait_for()
        page.focus("#cancel")
        page.keyboard.press("Enter")
        expect(page.locator("#job-title")).to_have_text("Cancelled")
        expect(page.locator("#job-title")).to_be_focused()
        expect(page.locator("#refit-button")).to_be_enabled()
        assert told_by(own_service, "model")["model"] == 1


@pytest.mark.slow
def test_a_dropped_file_and_a_reload_in_the_middle(browser, own_service):
    with opened(browser, own_service, "upload") as page:
        page.locator("#now-words", has_text="Model 1").wait_for()
        text = as_csv({"eve": ["tea", "rum"]})
        page.evaluate(
            """text => {
                const data = new DataTransfer();
                data.items.add(new File([text], "dropped.csv", { type: "text/csv" }));
                const drop = document.getElementById("drop");
                drop.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
            }""",
            text,
        )
        page.locator("#job-words", has_text="dropped.csv: 2 clicks").wait_for()
        page.reload()
        expect(page.locator("#job-words")).to_have_text("The model is being learnt.")
        expect(page.locator("#job-title")).to_have_text("A new model")
        expect(page.locator("#now-words")).to_contain_text("Model 2: 70 users")


@pytest.mark.slow
def test_a_token_is_asked_for_where_one_is_set(browser, model, tmp_path):
    shutil.copy(model, tmp_path / "model.pm")
    (tmp_path / "token").write_text("open sesame, please %41", encoding="utf-8")
    options = ["--token-file", str(tmp_path / "token")]
    with (
        serving(tmp_path / "model.pm", *options) as service,
        opened(browser, service, "upload", troubled=True) as page,
    ):
        page.locator("#token").wait_for()
        text = as_csv({"eve": ["tea", "rum"]})
        for token in ("", "wrong", "\u2603 not ASCII"):
            page.evaluate("document.getElementById('upload-trouble').replaceChildren()")
            page.fill("#token", token)
            give(page, text)
            expect(page.locator("#upload-trouble .trouble")).to_contain_text("oken")
        page.fill("#token", "open sesame, please %41")
        give(page, text)
        expect(page.locator("#job-title")).to_have_text("A new model")
        expect(page.locator("#upload-trouble")).to_be_empty()


# A service that dies


@pytest.mark.slow
def test_a_service_that_dies_is_told_in_words_and_found_again(browser, own_service):
    with opened(browser, own_service, "try", troubled=True) as page:
        pick(page, "tea")
        page.locator("#recommendations li").first.wait_for()
        own_service.kill()
        page.click("#popular button >> nth=3")
        expect(page.locator("#try-trouble")).to_contain_text(SILENT)
        expect(page.locator("#recommendations")).to_be_hidden()
        page.click("nav a[href='#consensus']")
        expect(page.locator("#consensus-trouble")).to_contain_text(SILENT)
        page.click("nav a[href='#upload']")
        give(page, as_csv({"eve": ["tea", "rum"]}))
        expect(page.locator("#upload-trouble")).to_contain_text(SILENT)

        own_service.start()
        page.click("nav a[href='#try']")
        page.click("#try-trouble button")
        page.locator("#recommendations li").first.wait_for()
        expect(page.locator("#try-trouble")).to_be_empty()
        page.click("nav a[href='#consensus']")
        page.locator("#cells svg").wait_for()


@pytest.mark.slow
def test_a_service_that_dies_while_it_learns(browser, own_service):
    with opened(browser, own_service, "upload", troubled=True) as page:
        page.locator("#now-words", has_text="Model 1").wait_for()
        give(page, as_csv({"eve": ["tea", "rum"]}))
        page.locator("#job-words", has_text="2 clicks").wait_for()
        own_service.kill()
        expect(page.locator("#upload-trouble")).to_contain_text(SILENT)
        expect(page.locator("#job")).to_be_hidden()
        expect(page.locator("#file")).to_be_enabled()


def test_a_page_that_comes_before_its_service_can_try_again(browser, service):
    with opened(browser, service, troubled=True) as page:
        page.locator("#clusters .card").first.wait_for()
        page.route("**/model", lambda route: route.abort())
        page.reload()
        expect(page.locator("#model-trouble")).to_contain_text(SILENT)
        page.unroute("**/model")
        page.click("#model-trouble button")
        expect(page.locator("#clusters .card")).to_have_count(2)
        expect(page.locator("#model-trouble")).to_be_empty()
