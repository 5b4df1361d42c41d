from ansatz.bench.record import circumstances
from ansatz.bench.start import measured_child
from ansatz.bench.suites import SUITES, choose


def test_the_record_says_what_one_needs_to_repeat_it():
    found = circumstances()
    assert found["versions"]["torch"] and found["date"].endswith("Z") and found["python"]


def test_the_time_of_a_child_is_its_own():
    import subprocess
    import sys

    busy = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    assert measured_child(lambda: subprocess.run(busy, check=True)).processor > 0.25


def test_every_suite_can_be_named():
    assert choose(["all"]) == list(SUITES) and choose(["start"]) == ["start"]
