"""What is done to single kernels: shut down while their server lives, or interrupted so that they can save."""

from lab import mail
from lab.people import Kernel
from lab.waiting import eventually, holds
from working import Terminal, explain, get, hold, request

TRAINING = """
import time, fake_card
fake_card.hold(gigabytes=9, card=0)
try:
    with fake_card.work(sm=90):
        while True:
            time.sleep(0.1)
except KeyboardInterrupt:
    time.sleep(4)  # a checkpoint takes a while
    with open({path!r}, "w") as file:
        file.write("epoch 7")
"""


def text_of(message):
    return " ".join(mail.plain_text(message).split())


def test_only_the_kernel_that_holds_the_idle_card_is_shut_down(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"action": "stop-kernels", "grace": "10s"}))
    (kim,) = arrive(hub, "kim")
    hold(kim, card=0)
    name_notebook(kim, kim.kernel, "work/a.ipynb")
    other = Kernel(kim, kim.server_model()["url"])
    other.run("x = 42")
    other.disconnect()
    kim.leave()

    eventually("kim is warned", lambda: mailbox.to(kim.address), within=60)
    told = text_of(mailbox.mails[0])
    assert "What: the kernels of work/a.ipynb; the server stays." in told, told
    assert explain(hub, kim)["would do"].startswith("nothing: its owner was promised the time until")

    eventually("her kernel is gone", lambda: not kim.kernel.process.is_running(), within=60)
    eventually("she is told", lambda: len(mailbox.mails) == 2)
    told = text_of(mailbox.mails[1])
    assert "the kernels of work/a.ipynb in your default Jupyter server were shut down. The server still runs." in told
    assert [kernel["id"] for kernel in get(kim, "api/kernels").json()] == [other.id]
    assert other.run("print(x)").strip() == "42"
    assert explain(hub, kim)["verdict"] == "protected: it holds no card"
    holds("nothing more comes of it", lambda: kim.is_running() and len(mailbox.mails) == 2, during=5)
    assert hub.metrics("gpu_culler_stops_total", outcome="stopped") == 1


def test_a_card_that_a_program_of_no_kernel_holds_is_left(start_hub, culler_config, arrive, mailbox, tmp_path):
    hub = start_hub(culler_config(policy={"action": "stop-kernels", "grace": "5s", "warn_after": "5s"}))
    (tom,) = arrive(hub, "tom")
    # A program of its own, started by no kernel's process but by the server's terminal.
    program = tmp_path / "hold.py"
    program.write_text("import time, fake_card\nfake_card.hold(gigabytes=9, card=0)\nprint(1 + 1, 'held')\ntime.sleep(3600)")
    shell = Terminal(tom)
    shell.type(f"python3 {program}", until="2 held")
    shell.leave()
    tom.leave()
    reason = "nothing: no kernel is shut down: a process that belongs to no kernel holds the card"
    eventually("that is the reason", lambda: explain(hub, tom)["would do"] == reason, within=40, every=1)
    holds("tom is left alone", lambda: tom.is_running() and not mailbox.mails, during=8)


def test_a_training_loop_saves_its_checkpoint_before_the_stop(start_hub, culler_config, arrive, mailbox, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    policy = {"max_age": "20s", "max_age_even_if_busy": True, "interrupt": True, "save_wait": "30s", "grace": "10s"}
    hub = start_hub(culler_config(policy=policy))
    (ina,) = arrive(hub, "ina")
    ina.kernel.start(TRAINING.format(path=str(checkpoint)))
    ina.leave()

    eventually("ina is warned", lambda: mailbox.to(ina.address), within=60)
    told = text_of(mailbox.mails[0])
    assert "Before that: running cells are interrupted, as with the stop button, and get up to 30 seconds" in told, told
    assert not checkpoint.exists()
    eventually("her server is gone", lambda: not ina.is_running(), within=90)
    assert checkpoint.read_text() == "epoch 7"


def name_notebook(person, kernel, path):
    """A notebook at this path gets the kernel, as when it is opened in a browser."""
    session = {"path": path, "name": path, "type": "notebook", "kernel": {"id": kernel.id}}
    request("POST", person, "api/sessions", json=session)
