"""A keep that comes between the decision to stop and the stop itself."""

from lab.stories import forget_and_leave
from lab.visitor import Visitor
from lab.waiting import eventually, holds
from meddler import Meddler


class Moments:
    """Lets people keep their servers, each while the service waits for the Hub's answer to one request."""

    def __init__(self):
        self.keepers = {}
        self.told = {}

    def at(self, method, path, visitor):
        """The form is taken now, as from a page that has been open for a while."""
        self.keepers[method, path] = (visitor, visitor.form("keep", f"session/{visitor.name}/"))

    def before(self, method, path):
        visitor, form = self.keepers.pop((method, path), (None, None))
        if visitor:
            self.told[visitor.name] = visitor.post("keep", {**form, "for": "2h"}).text


def test_a_keep_between_decision_and_stop_wins_and_one_during_the_stop_is_told_so(
    start_hub, culler_config, arrive, mailbox
):
    moments = Moments()
    with Meddler(before=moments.before) as meddler:
        hub = start_hub(culler_config(hub={"api_url": meddler.api_url}))
        meddler.target = hub.hub_url
        nora, olga = arrive(hub, "nora", "olga")
        forget_and_leave(nora)
        forget_and_leave(olga)
        for person in (nora, olga):
            eventually(f"{person.name} is warned", lambda person=person: mailbox.to(person.address), within=60)
        # Only the last look before a stop asks the Hub about a single user.
        moments.at("GET", "/hub/api/users/nora", Visitor(hub, "nora"))
        moments.at("DELETE", "/hub/api/users/olga/server", Visitor(hub, "olga"))

        eventually("olga's server is gone", lambda: not olga.is_running(), within=60)
        eventually("both were told", lambda: len(moments.told) == 2, within=30)
        assert "Kept until" in moments.told["nora"]
        assert "being stopped at this very moment" in moments.told["olga"]
        eventually("the stop was called off", lambda: "just before the stop: somebody asked to keep it" in hub.log_tail(400))
        holds("nora's server lives", nora.is_running, during=8)
        assert len(nora.processes()) == 2
        assert hub.metrics("gpu_culler_stops_total", outcome="stopped") == 1
