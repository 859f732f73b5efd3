"""scratch: screenshots"""
import time
from playwright.sync_api import expect
from tests.web.desk import MAIN, Desk, in_thread
from tests.web.families import ask_helpers, set_price, words
from tests.web.test_panels import bird, fly, patch_config, PIGEONS
from tests.web.test_usage import talk
def test_shots(desk: Desk) -> None:
    set_price(desk)
    patch_config(desk, PIGEONS)
    talk(desk, MAIN, 2); talk(desk, "agent:main:invoices", 1); talk(desk, "agent:main:a-very-long-name-of-a-session-that-goes-on-and-on", 1)
    desk.call("cron.add", name="briefing", schedule={"kind":"cron","expr":"0 7 * * 1-5"}, sessionTarget="isolated", payload={"kind":"agentTurn","message":"Brief me on today, please, with everything that matters"})
    desk.call("cron.add", name="nag", schedule={"kind":"every","everyMs":7200000}, sessionTarget="main", payload={"kind":"systemEvent","text":"taxes"})
    in_thread(fly(desk, bird(1, "66", "Zed")))
    ask_helpers(desk, research=words(20), invoices_check=words(900), translate=words(900))
    page = desk.sign_in("#/tree")
    time.sleep(3)
    for name in ("tree","usage","status","cron","people","devices","logs","settings"):
        desk.open(f"#/{name}")
        time.sleep(1.2)
        if name=="usage":
            page.get_by_role("button", name="Tokens", exact=True).click(); time.sleep(.5)
            page.locator(".mark").last.focus()
        for theme in ("light","dark"):
            page.evaluate("(t)=>{document.documentElement.dataset.theme=t}", theme)
            page.screenshot(path=f"/tmp/shots/{name}_{theme}.png")
        page.set_viewport_size({"width":390,"height":800}); time.sleep(.6)
        page.screenshot(path=f"/tmp/shots/{name}_narrow.png")
        page.set_viewport_size({"width":1280,"height":800})
