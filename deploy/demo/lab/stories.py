"""What people do with a card and then leave to itself."""

TRAINING = """
import time, fake_card
fake_card.hold(gigabytes=52)
with fake_card.work(sm=93, dram=61):
    time.sleep(3600)
"""

NUMBER_CRUNCHING = """
import os, time, fake_card
fake_card.hold(gigabytes=9)
os.nice(10)
end = time.time() + 3600
while time.time() < end:
    sum(range(100_000))
"""


WAITING = """
import time, fake_card
fake_card.hold(gigabytes=9)
time.sleep(3600)
"""


def train_and_leave(person):
    """A long training in a cell that prints nothing, and the browser closed: the Hub sees no activity at all."""
    person.kernel.start(TRAINING)
    person.leave()


def forget_and_leave(person):
    """A notebook that ran, still holds its memory on the card, and that nobody looks at any more."""
    person.kernel.run("import fake_card; fake_card.hold(gigabytes=38)")
    person.leave()


def crunch_and_leave(person):
    """A cell that computes on the processor for long while the card it holds waits."""
    person.kernel.start(NUMBER_CRUNCHING)
    person.leave()


def wait_and_leave(person):
    """A cell that waits for something and needs neither the processor nor the card meanwhile."""
    person.kernel.start(WAITING)
    person.leave()
