"""Sessions in pods with the cluster watched: what the Kubernetes API tells, and what follows when it is silent."""

import signal

import requests
from cluster import NAMESPACE, KubeHub, Tenant
from lab.waiting import eventually, holds
from routes import ForgetfulFront
from working import explain

ROLE = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/gpu-culler"


def watched(cluster, **changes):
    """The sections that read the cluster and watch its pods, with no more rights than deploy/ gives."""
    cluster.deploy()
    kubernetes = {"kubeconfig": str(cluster.api.culler_kubeconfig)}
    return {**cluster.settings(), "kubernetes": kubernetes, **changes}


def limits(seconds, **more):
    return {"warn_after": f"{seconds}s", "connected_warn_after": f"{seconds}s", "grace": "8s", **more}


def test_who_waits_for_a_card_gets_that_of_the_longest_idle(start_cluster, start_hub, culler_config, mailbox):
    cluster = start_cluster(2)
    with ForgetfulFront() as front:
        policy = limits(600, when_waiting={"warn_after": "5s", "connected_warn_after": "5s"})
        settings = watched(cluster, policy=policy, hub={"public_url": front.url})
        hub = start_hub(culler_config(**settings), kind=KubeHub)
        front.target = hub.public_url
        ida = Tenant(hub, "ida").arrive()
        tim = Tenant(hub, "tim").arrive()
        eventually("both cards are known", lambda: all("kernel" in str(explain(hub, who)) for who in (ida, tim)))
        holds("nobody is warned while nobody waits", lambda: not mailbox.mails, during=10)

        zoe = Tenant(hub, "zoe").ask_for_a_server()
        eventually("ida is warned", lambda: mailbox.to(ida.address), within=40)
        eventually("ida's server is stopped", lambda: not ida.is_running(), within=40)
        eventually("zoe's server starts in her place", zoe.is_running, within=60)
        holds("the other one keeps his", lambda: tim.is_running() and not mailbox.to(tim.address), during=6)
        assert cluster.api.pods().keys() == {tim.pod, zoe.pod}
        assert front.passed == 0, "servers are asked at their pods' addresses and never past the proxy"
        asked = {(one["verb"], one["resource"]) for one in cluster.api.requests_of_the_culler()}
        assert asked == {("list", "pods"), ("watch", "pods")}  # the role has these and no other


def test_a_silent_cluster_is_unknown_and_a_hanging_pod_an_orphan(start_cluster, start_hub, culler_config, mailbox):
    cluster = start_cluster(1)
    hub = start_hub(culler_config(**watched(cluster, policy=limits(45))), kind=KubeHub)
    ida = Tenant(hub, "ida").arrive()
    eventually("her card is known", lambda: metrics(hub, "gpu_culler_cards", held_by="session") == 1)
    cluster.api.process.send_signal(signal.SIGSTOP)
    eventually("she is unknown", lambda: metrics(hub, "gpu_culler_sessions", verdict="unknown") == 1, within=40)
    holds("nothing happens to her", lambda: ida.is_running() and not mailbox.mails, during=25)
    assert f"nothing was heard of the pods of {NAMESPACE}" in hub.log.read_text()
    cluster.api.process.send_signal(signal.SIGCONT)

    cluster.kubelets.hanging.add(ida.pod)
    eventually("ida is warned", lambda: mailbox.to(ida.address), within=60)
    eventually("that her pod lives on is counted", lambda: metrics(hub, "gpu_culler_stops_total", outcome="orphaned") == 1, within=90)
    assert f"{NAMESPACE}/{ida.pod} on node gpu-node-1, Terminating" in hub.log.read_text()
    cluster.kubelets.hanging.clear()
    eventually("its pod goes after all", lambda: ida.pod not in cluster.api.pods())


def test_a_right_that_is_missing_is_named(start_cluster, start_hub, culler_config, gpu_culler):
    cluster = start_cluster(1)
    config = culler_config(**watched(cluster), mode="observe")
    role = cluster.api.ask("GET", ROLE)
    cluster.api.ask("PUT", ROLE, json={**role, "rules": [{**role["rules"][0], "verbs": ["list"]}]})
    hub = start_hub(config, kind=KubeHub)
    checked = gpu_culler(hub, config, "check")
    assert checked.code == 1
    assert f"may not watch pods in {NAMESPACE}: add the verbs to its Role" in checked.out, checked.out


def metrics(hub, name, **labels):
    """A metric of the service; None while its port is not open."""
    try:
        return hub.metrics(name, **labels)
    except requests.RequestException:
        return None
