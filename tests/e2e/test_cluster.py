"""Sessions in pods, judged by what dcgm-exporter tells a real Prometheus."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep, time

from cluster import KubeHub, Tenant
from lab.waiting import eventually
from working import explain

GRACE = 8  # seconds
LATE = 10  # how much later than it could be a scrape, a look and a cycle let it be


def arrive(hub, *names):
    """Tenants who arrive at the same time, each with a card, run something and leave."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda name: Tenant(hub, name).arrive(), names))


def limits(seconds):
    """Who is connected does not matter, so a Hub that starts again is no sign of anybody."""
    return {"warn_after": f"{seconds}s", "connected_warn_after": f"{seconds}s", "grace": f"{GRACE}s"}


def is_stopped_on_time(cluster, mailbox, tenant):
    """The pod goes when the time promised in the warning is over."""
    gone_at = eventually(f"{tenant.name}'s server is stopped", lambda: not tenant.is_running() and time(), within=40)
    eventually("so is its pod", lambda: tenant.pod not in cluster.api.pods())
    warning, *_ = mailbox.to(tenant.address)
    assert GRACE <= gone_at - warning.received_at <= GRACE + 2 * LATE  # the server takes its time to end


def test_only_the_idle_card_is_taken_whatever_else_is_late_or_silent(start_cluster, start_hub, culler_config, mailbox):
    cluster = start_cluster(1, 1, 1, 1)
    # Servers without a card go sooner than any, so a card that is not seen yet must not be taken for none.
    no_card = {"cull": True, "idle_after": "6s"}
    settings = {**cluster.settings(label_delay="90s"), "policy": limits(14), "cpu_servers": no_card}
    hub = start_hub(culler_config(**settings), kind=KubeHub)
    for exporter in cluster.exporters:
        exporter.label_delay["jupyter-lea"] = 45
        exporter.activity.update({"jupyter-bea": 0.9, "jupyter-lea": 0.9})
    ida, bea, lea, dee = arrive(hub, "ida", "bea", "lea", "dee")
    silent = cluster.exporter_of(dee)
    silent.dead = True

    eventually("ida is warned", lambda: mailbox.to(ida.address), within=60)
    is_stopped_on_time(cluster, mailbox, ida)
    assert [tenant.name for tenant in (bea, lea, dee) if mailbox.to(tenant.address)] == []
    told = explain(hub, dee)["verdict"]
    assert told.startswith("unknown") and silent.node.name in str(explain(hub, dee)), told
    eventually("lea's card is seen", lambda: explain(hub, lea)["verdict"].startswith("busy: a card"), within=60)

    silent.dead = False
    back_at = time()
    eventually("dee is warned", lambda: mailbox.to(dee.address), within=60)
    (warning,) = mailbox.to(dee.address)
    assert warning.received_at - back_at >= 14 - 4  # what the card did meanwhile nobody knows
    is_stopped_on_time(cluster, mailbox, dee)
    assert bea.is_running() and lea.is_running() and not mailbox.to(bea.address) and not mailbox.to(lea.address)


def test_a_prometheus_and_a_hub_that_start_again_cost_nobody_a_server_and_no_time(
    start_cluster, start_hub, culler_config, mailbox
):
    cluster = start_cluster(1, 1)
    hub = start_hub(culler_config(**cluster.settings(), policy=limits(40)), kind=KubeHub)
    cluster.exporters[0].activity["jupyter-bob"] = cluster.exporters[1].activity["jupyter-bob"] = 0.7
    ian, bob = arrive(hub, "ian", "bob")
    left_at = time()
    cluster.prometheus.restart(after=2)
    hub.crash()
    hub.start()

    eventually("ian is warned", lambda: mailbox.to(ian.address), within=60)
    (warning,) = mailbox.to(ian.address)
    assert 40 - 4 <= warning.received_at - left_at <= 40 + LATE
    is_stopped_on_time(cluster, mailbox, ian)
    assert bob.is_running() and not mailbox.to(bob.address)


def test_a_service_that_lost_its_memory_knows_from_prometheus_what_each_card_did(
    start_cluster, start_hub, culler_config, mailbox, tmp_path
):
    cluster = start_cluster(1, 1)
    hub = start_hub(culler_config(**cluster.settings(), policy=limits(45)), kind=KubeHub)
    ian, una = arrive(hub, "ian", "una")
    left_at = time()
    eventually("the cards are known", lambda: all("GPU-" in str(explain(hub, who)) for who in (ian, una)))
    hub.culler_process().kill()
    eventually("it is dead", lambda: not hub.culler_process())
    for file in tmp_path.glob("gpu-culler.sqlite*"):
        file.unlink()
    cluster.work(una, 0.6)
    sleep(3)  # her card works while nobody looks
    cluster.work(una, 0)
    worked_at = time()
    eventually("the Hub starts the service again", hub.culler_process, within=40)
    assert time() - left_at < 45, "the service came back too late for this test to tell anything"

    eventually("ian is warned", lambda: mailbox.to(ian.address), within=60)
    (warning,) = mailbox.to(ian.address)
    assert 45 - 4 <= warning.received_at - left_at <= 45 + LATE
    is_stopped_on_time(cluster, mailbox, ian)
    eventually("una is warned", lambda: mailbox.to(una.address), within=60)
    (warning,) = mailbox.to(una.address)
    assert warning.received_at - worked_at >= 45 - 4
