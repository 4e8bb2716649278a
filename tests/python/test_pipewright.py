"""Tests the built package: the same figures and messages as the program's, values that remain valid, work that ends.

usage: test_pipewright.py BUILD SOURCE [CASE…]"""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.dom.minidom
from pathlib import Path

BUILD, SOURCE = sys.argv[1:3]
sys.path.insert(0, f"{BUILD}/python")

import numpy  # noqa: E402
import pipewright as pw  # noqa: E402

PROGRAM = f"{BUILD}/bin/pipewright"
SHARED = f"{SOURCE}/scenarios/shared-card"
H100 = f"{SOURCE}/scenarios/clusters/h100-sxm.json"


def program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)


def printed(*words):
    done = program(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shared():
    return pw.Scenario.read(f"{SHARED}/scenario.json"), pw.LayerCosts.read(f"{SHARED}/costs.json")


class Figures(unittest.TestCase):
    def test_simulate_says_what_the_program_prints(self):
        scenario, costs = shared()
        for fields in ({}, {"pipeline.ranks": 2, "pipeline.microbatches": 6, "pipeline.schedule": "zb-h1"},
                       {"training.zero": 1, "pipeline.replicas": 2, "pipeline.ranks": 2}):
            words = [word for field, value in fields.items() for word in ("--set", f"{field}={value}")]
            predicted = pw.simulate(scenario.set(fields), costs)
            self.assertEqual(predicted.to_dict(), printed("simulate", f"{SHARED}/scenario.json", "--costs",
                                                          f"{SHARED}/costs.json", "--json", *words))
            self.assertEqual(predicted.timeline.iteration_s, predicted.iteration_s)
            self.assertEqual(len(predicted.boundaries), predicted.schedule.stages + 1)

    def test_plans_are_the_programs(self):
        found = pw.plans("llama3-8b", cluster=H100, batch=64, gpus=16, sequence=4096, pipeline=[4], zero=[0, 1], top=4)
        theirs = printed("plan", "--model", "llama3-8b", "--cluster", H100, "--batch", 64, "--gpus", 16, "--sequence", 4096,
                         "--pipeline", 4, "--zero", "0,1", "--top", 4, "--json")["plans"]
        self.assertEqual(len(found), 4)
        for ours, one in zip(found, theirs):
            self.assertEqual({key: one[key] for key in ours}, ours)

    def test_every_schedule_has_the_programs_rows(self):
        self.assertGreater(len(pw.schedules()), 20)
        for name in ("gpipe", "1f1b", "interleaved-1f1b", "zbv", "dualpipe", "chimera"):
            theirs = program("schedule", name, "--ranks", 4, "--microbatches", 8)
            made = pw.schedule(name, ranks=4, microbatches=8)
            self.assertEqual(made.to_csv(), theirs.stdout)
            self.assertEqual(pw.Schedule(made.ranks), made)
            made.validate()

    def test_what_is_exported_comes_back_as_the_same_cut(self):
        scenario, costs = shared()
        with tempfile.TemporaryDirectory() as folder:
            for trainer in ("torchtitan", "torchtitan-0.2", "deepspeed"):
                told = scenario.set({"pipeline.schedule": "1f1b"})
                file = Path(folder, trainer)
                file.write_text(told.export(trainer, costs))
                back = scenario.set({"pipeline.schedule": "gpipe", "pipeline.microbatches": 3}).cut_as(str(file))
                self.assertEqual(pw.simulate(back, costs).to_dict(), pw.simulate(told, costs).to_dict())


class OwnSchedule(unittest.TestCase):
    def test_it_is_proved_timed_drawn_and_taken_by_the_program(self):
        ranks, microbatches = 3, 5
        rows = [[f"{rank}F{m}" for m in range(microbatches)] + [f"{rank}B{m}" for m in reversed(range(microbatches))]
                for rank in range(ranks)]
        own = pw.Schedule(rows)
        own.validate()
        # All forwards, then all backwards: the bubble is (P - 1)(F + B).
        timeline = own.timeline(forward=2, input_gradient=3, weight_gradient=1)
        self.assertEqual(timeline.iteration_s, (microbatches + ranks - 1) * 6)
        self.assertEqual(timeline.bubble_s, [(ranks - 1) * 6] * ranks)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "own.csv")
            file.write_text(own.to_csv())
            self.assertEqual(program("schedule", "--check", file).returncode, 0)
            self.assertEqual(pw.Schedule.from_csv(file.read_text()), own)
            words = ["simulate", f"{SHARED}/scenario.json", "--costs", f"{SHARED}/costs.json", "--schedule", file, "--set",
                     "pipeline.ranks=3", "--set", "pipeline.microbatches=5", "--set", "pipeline.replicas=1", "--json"]
            self.assertGreater(printed(*words)["iteration_s"], 0)

    def test_what_cannot_run_is_refused_in_the_programs_words(self):
        with self.assertRaisesRegex(pw.InputError, "deadlock: rank 1 at 1B0 waits for 1F0"):
            pw.Schedule([["0F0", "0B0"], ["1B0", "1F0"]]).validate()
        with self.assertRaisesRegex(ValueError, 'schedule:1:2: "0Q0" is not an action'):
            pw.Schedule([["0F0", "0Q0"]])
        theirs = program("schedule", "zbv", "--ranks", 3, "--microbatches", 0)
        with self.assertRaises(ValueError) as refused:
            pw.schedule("zbv", ranks=3, microbatches=0)
        self.assertIn(str(refused.exception), theirs.stderr)

    def test_a_program_has_what_lowering_adds(self):
        lowered = pw.schedule("1f1b", ranks=2, microbatches=2).lower(replicas=2)
        lowered.validate()
        self.assertIn("0REDUCE_GRAD", [word.split("#")[0] for word in lowered.ranks[0]])


class Errors(unittest.TestCase):
    def test_words_are_those_of_the_program(self):
        scenario, costs = shared()
        with self.assertRaises(ValueError) as refused:
            scenario.set({"pipeline.rank": 2})
        theirs = program("simulate", f"{SHARED}/scenario.json", "--set", "pipeline.rank=2")
        self.assertEqual(theirs.returncode, 2)
        self.assertIn(str(refused.exception), theirs.stderr)
        with self.assertRaisesRegex(pw.InputError, "nowhere.json"):
            pw.Scenario.read("nowhere.json")
        with self.assertRaisesRegex(pw.Infeasible, "pipeline.schedule=gpipe: its engine runs 1f1b"):
            scenario.set({"pipeline.schedule": "gpipe"}).export("deepspeed", costs)
        with self.assertRaises(TypeError):
            pw.Scenario({"name": object()})

    def test_a_dictionary_is_a_scenario(self):
        scenario, costs = shared()
        fields = scenario.to_dict()
        self.assertEqual(pw.Scenario(fields), scenario)
        self.assertEqual(pw.LayerCosts(costs.to_dict()).to_dict(), costs.to_dict())


class Timelines(unittest.TestCase):
    def test_arrays_are_views_that_keep_the_timeline(self):
        timeline = pw.schedule("1f1b", ranks=4, microbatches=16).timeline()
        spans = timeline.spans
        arrays = timeline.to_arrays()
        again = timeline.to_arrays()
        del timeline
        for name, place in (("rank", 0), ("start", 3), ("end", 4)):
            self.assertEqual(arrays[name].tolist(), [span[place] for span in spans])
            self.assertTrue(numpy.shares_memory(arrays[name], again[name]))
            self.assertFalse(arrays[name].flags.owndata)
            self.assertFalse(arrays[name].flags.writeable)
        words = ["compute", "send", "receive", "reduce"]
        self.assertEqual([words[row] for row in arrays["row"]], [span[1] for span in spans])

    def test_it_draws_itself_as_the_program_does(self):
        scenario, costs = shared()
        predicted = pw.simulate(scenario, costs)
        picture = predicted._repr_svg_()
        xml.dom.minidom.parseString(picture)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "t.svg")
            program("simulate", f"{SHARED}/scenario.json", "--costs", f"{SHARED}/costs.json", "--svg", file)

            def boxes(text):
                return re.findall(r"<path[^>]*>", text)

            self.assertEqual(boxes(picture), boxes(file.read_text()))
            self.assertGreater(len(boxes(picture)), 4)
            saved = Path(folder, "t.pwt")
            predicted.timeline.save(str(saved))
            read = pw.read_timeline(str(saved))
            self.assertEqual(sorted(read.spans), sorted(predicted.timeline.spans))
            self.assertEqual(predicted.timeline.compare(read)["error_percent"]["iteration_s"], 0)


class LongWork(unittest.TestCase):
    # 300,000 candidates: seconds on one core.
    LARGE = dict(cluster=f"{SOURCE}/scenarios/clusters/a100-80gb.json", batch=3072, gpus=1024, tensor=[1, 2, 4, 8, 16, 32])

    def test_progress_is_told_and_may_end_it(self):
        told = []

        def progress(done, of):
            told.append((done, of))
            if len(told) == 3:
                raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            pw.plans("gpt3-175b", progress=progress, **self.LARGE)
        self.assertEqual(len(told), 3)
        self.assertTrue(all(0 <= done <= of for done, of in told))

    def test_an_interrupt_ends_it(self):
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):  # for machines of any speed
                pw.plans("gpt3-175b", **self.LARGE)
        timer.join()

    def traces(self, folder, count):
        """Returns one rank's trace this many times, by name: each is read, and all together are rejected."""
        event = '{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":1,"ts":%d,"dur":%d}'
        marks = [("ProfilerStep#1", 0, 20_000), ("PP:0F0", 10, 100), ("PP:0B0", 200, 100)]
        events = [event % ("user_annotation", *mark) for mark in marks]
        events += [event % ("cpu_op", "aten::add", start, 1) for start in range(20_000)]
        file = Path(folder, "trace.json")
        file.write_text('{"traceEvents":[' + ",".join(events) + "]}")
        return [str(file)] * count

    def test_progress_of_an_explanation_is_told_within_a_file_and_may_end_it(self):
        told = []

        def progress(done, of):
            told.append((done, of))
            if len(told) == 4:
                raise RuntimeError("enough")

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(RuntimeError, "enough"):
                pw.explain(self.traces(folder, 2), progress=progress)
        self.assertEqual(told, [(0, 3)] * 4)

    def test_an_interrupt_ends_an_explanation(self):
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        with tempfile.TemporaryDirectory() as folder:
            files = self.traces(folder, 300)
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                pw.explain(files)
        timer.join()

    def test_other_threads_run_beside_it(self):
        large = pw.schedule("interleaved-1f1b", ranks=32, microbatches=256, chunks=4)
        ran, ends = [0], threading.Event()

        def count():
            while not ends.is_set():
                ran[0] += 1
                time.sleep(0.0005)

        counter = threading.Thread(target=count)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # seconds: only a thread that releases the interpreter lock lets the other one run
        try:
            counter.start()
            for work in (large.validate, large.lower, large.timeline, large.lower().validate,
                         lambda: pw.schedule("interleaved-1f1b", ranks=64, microbatches=1024, chunks=4)):
                before = ran[0]
                for _ in range(200):  # for machines of any speed
                    work()
                    if ran[0] > before:
                        break
                self.assertGreater(ran[0], before, work)
        finally:
            sys.setswitchinterval(interval)
            ends.set()
            counter.join()


class Hangs(unittest.TestCase):
    def test_what_the_program_says_of_dumps(self):
        dumps = f"{SOURCE}/tests/data/flight_recorder/gloo"
        diagnosis = pw.explain_hang([dumps])
        self.assertEqual(diagnosis, json.loads(program("explain", "--hang", dumps, "--json").stdout))
        self.assertEqual(diagnosis["kind"], "collective")
        with self.assertRaisesRegex(pw.InputError, "nowhere"):
            pw.explain_hang(["nowhere"])


class Package(unittest.TestCase):
    def test_stubs_name_all_that_the_package_has(self):
        stubs = Path(BUILD, "python/pipewright/_pipewright.pyi").read_text()
        names = {node.name for node in ast.parse(stubs).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertLessEqual(set(pw.__all__) - {"__version__"}, names)
        for name in set(pw.__all__) - {"__version__"}:
            self.assertTrue(getattr(pw, name).__doc__, name)
        self.assertEqual(pw.__version__, program("--version").stdout.strip())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
