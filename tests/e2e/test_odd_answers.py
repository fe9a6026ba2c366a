"""What the Hub says of one server may be nonsense; the others are looked after all the same."""

from lab.page import visible_text
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds
from meddler import Meddler


def nonsense_about_olga(path, answer):
    """The list of users with a number where olga's server should be."""
    for user in answer.get("items", []) if isinstance(answer, dict) else answer:
        if user["name"] == "olga" and user["servers"]:
            user["servers"] = {"": 17}
    return answer


def test_a_record_that_does_not_parse_costs_only_its_server(start_hub, culler_config, arrive, mailbox):
    with Meddler(nonsense_about_olga) as meddler:
        hub = start_hub(culler_config(hub={"api_url": meddler.api_url}))
        meddler.target = hub.hub_url
        olga, nora = arrive(hub, "olga", "nora")
        forget_and_leave(olga)
        forget_and_leave(nora)

        eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
        assert "could not be read" in visible_text(hub.page().text)
        eventually("nora's server is gone", lambda: not nora.is_running(), within=60)
        holds("olga's server runs on", olga.is_running, during=5)
        assert not mailbox.to(olga.address)
