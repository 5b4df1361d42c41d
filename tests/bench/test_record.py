"""Records of benchmarks that were run in parts."""

import json

from ansatz.bench.record import among_earlier

NOW = {"commit": "b2", "date": "today", "load": 0.1}


def test_cases_that_were_not_measured_stay_and_all_are_dated(tmp_path):
    path = tmp_path / "bench-a.json"
    earlier = {"commit": "a1", "date": "then", "results": [{"name": "x"}, {"name": "y", "ours": 1}]}
    path.write_text(json.dumps(earlier))
    assert among_earlier(path, [{"name": "y", "ours": 2}, {"name": "z"}], NOW) == [
        {"name": "x", "commit": "a1", "date": "then"},
        {"name": "y", "ours": 2, "commit": "b2", "date": "today"},
        {"name": "z", "commit": "b2", "date": "today"},
    ]


def test_the_date_of_a_case_is_its_own_after_a_third_run(tmp_path):
    path = tmp_path / "bench-a.json"
    for number, name in enumerate("xyx"):
        now = {"commit": f"c{number}", "date": f"day {number}"}
        rows = among_earlier(path, [{"name": name}], now)
        path.write_text(json.dumps({**now, "results": rows}))
    assert [(row["name"], row["date"]) for row in rows] == [("x", "day 2"), ("y", "day 1")]
