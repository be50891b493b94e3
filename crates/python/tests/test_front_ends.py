"""The other front ends from Python: NESL, kernels in PTX, image effects, StreamIt."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import broadloom as bl
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]

NESL = """
function sums(rows) : [[float]] -> [float] = {sum(row) : row in rows};
function quicksort(s) : [int] -> [int] =
  if #s < 2 then s
  else let p = s[#s/2];
           parts = {quicksort(v) : v in [{e in s | e < p}, {e in s | e > p}]}
       in parts[0] ++ {e in s | e == p} ++ parts[1];
function both(a, b) : (int, [float]) -> (float, [[int]]) = (sum(b), {[0:i] : i in [0:a]});
function greet(name) : [char] -> [char] = "hi " ++ name;
function split(s) : [int] -> [(int, bool)] = {x, x > 2 : x in s};
function inverse(x) : float -> float = 1.0 / x;
function head(s) : [int] -> int = s[0];
"""


class Nesl(unittest.TestCase):
    def setUp(self):
        self.program = bl.nesl(NESL)

    def test_values_of_every_type(self):
        m = self.program
        self.assertEqual(m.sums([[1.0, 2.0], [], [3.5]]).tolist(), [3.0, 0.0, 3.5])
        self.assertEqual(m.quicksort(np.array([3, 1, 2, 9, 0])).tolist(), [0, 1, 2, 3, 9])
        total, rows = m.both(3, [1.0, 2.5])
        self.assertEqual((total, rows.tolist(), rows[-1].tolist()), (3.5, [[], [0], [0, 1]], [0, 1]))
        self.assertEqual(m.greet("you"), "hi you")
        numbers, flags = m.split(bl.asarray([1, 5]))
        self.assertEqual((numbers.tolist(), flags.tolist()), ([1, 5], [False, True]))
        self.assertEqual(m.inverse(4), 0.25)

    def test_long_arrays_stay_on_the_device(self):
        x = bl.asarray(np.random.default_rng(3).integers(0, 10**6, 100_000))
        y = self.program.quicksort(x * 2)
        np.testing.assert_array_equal(np.asarray(y), np.sort(np.asarray(x) * 2))

    def test_ctrl_c_ends_a_call(self):
        program = (
            "import broadloom as bl, os, signal, threading\n"
            "m = bl.nesl('function spin(n) : int -> int = if n == 0 then 0 else spin(n - 1);')\n"
            "m.spin(3)\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # A job in the background ignores the signal.
            "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try:\n"
            "    m.spin(10**15)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', m.spin(3))\n"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((run.stdout, run.stderr), ("interrupted 0\n", ""))

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, r"(?s)function f\(x\) = y.*\^"):
            bl.nesl("function f(x) = y;")
        with self.assertRaisesRegex(AttributeError, "no function `sort`; it has sums"):
            self.program.sort
        with self.assertRaisesRegex(TypeError, "takes 1 arguments, not 2"):
            self.program.sums([[1.0]], 2)
        with self.assertRaisesRegex(TypeError, "'a' for the NESL type `int`"):
            self.program.quicksort(["a"])
        with self.assertRaisesRegex(RuntimeError, "(?s)out of range|index"):
            self.program.head([])


class Kernels(unittest.TestCase):
    def setUp(self):
        self.saxpy = bl.kernel(ROOT / "examples" / "saxpy.ptx")

    def test_a_kernel_changes_its_arrays(self):
        x, y = bl.arange(1000, dtype=bl.float32), bl.ones(1000, dtype=bl.float32)
        before = y + 0
        self.saxpy[4, 256](2, x + 1, y, 1000)
        np.testing.assert_array_equal(np.asarray(y), 2 * (np.arange(1000, dtype=np.float32) + 1) + 1)
        self.assertEqual(float(bl.sum(before)), 1000.0)
        self.assertEqual(float((y * 2)[0]), 6.0)

    def test_mistakes(self):
        x = bl.ones(4, dtype=bl.float32)
        with self.assertRaisesRegex(ValueError, "takes 4 arguments, not 1"):
            self.saxpy[1, 4](x)
        with self.assertRaisesRegex(ValueError, "`n` is an integer, not 2.5"):
            self.saxpy[1, 4](1.0, x, x.copy(), 2.5)
        with self.assertRaisesRegex(ValueError, "pass a copy"):
            self.saxpy[1, 4](1.0, x, x, 4)
        with self.assertRaisesRegex(ValueError, "(?s)error.*kernel.ptx"):
            bl.kernel(".version 7.0 .target sm_70 .address_size 64 .visible .entry k() { ret }")
        with self.assertRaisesRegex(ValueError, "grid is one to three positive numbers"):
            self.saxpy[0, 4](1.0, x, x.copy(), 4)


class Effects(unittest.TestCase):
    def test_an_effect_on_every_shape(self):
        image = np.random.default_rng(5).random((20, 30, 3)).astype(np.float32)
        blurred = bl.effects.gaussian(image, sigma=1.5)
        self.assertEqual((blurred.shape, blurred.dtype), ((20, 30, 3), bl.float32))
        plane = bl.effects.gaussian(bl.asarray(image[:, :, 1]), sigma=1.5)
        np.testing.assert_allclose(np.asarray(plane), np.asarray(blurred)[:, :, 1], rtol=1e-6)
        self.assertLess(float(bl.std(blurred)), float(np.std(image)))
        byte = (image * 255).round().astype(np.uint8)
        again = bl.effects.gaussian(byte, sigma=0)
        np.testing.assert_allclose(np.asarray(again), byte / np.float32(255), rtol=1e-6)

    def test_a_chain_is_its_steps(self):
        image = np.random.default_rng(6).random((16, 16)).astype(np.float32)
        chained = bl.effect("gaussian,unsharp", image, **{"gaussian.sigma": 2, "amount": 0.5})
        steps = bl.effects.unsharp(bl.effects.gaussian(image, sigma=2), amount=0.5)
        np.testing.assert_allclose(np.asarray(chained), np.asarray(steps), atol=1e-5)

    def test_mistakes(self):
        image = np.zeros((4, 4), np.float32)
        with self.assertRaisesRegex(AttributeError, "there is no effect `gausian`"):
            bl.effects.gausian
        with self.assertRaisesRegex(ValueError, "sigma"):
            bl.effects.gaussian(image, sigma=-1)
        with self.assertRaisesRegex(ValueError, "not \\(2, 2, 2, 2\\)"):
            bl.effects.gaussian(np.zeros((2, 2, 2, 2)))


class Streams(unittest.TestCase):
    def test_pieces_of_any_size_give_one_output(self):
        source, name = ROOT / "examples" / "stream" / "low_pass.str", "Fir(8000, 1000, 65)"
        items = np.sin(np.arange(2000) * 0.1).astype(np.float32)
        whole = bl.stream(source, name)(items)
        running, parts = bl.stream(source, name), []
        for start in range(0, 2000, 300):
            running.push(items[start : start + 300])
        parts = [running.pull(5), running.pull()]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        self.assertGreater(whole.size, 1900)
        self.assertEqual((running.input_dtype, running.latency["start"]), (bl.float32, 65))

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "(?s)error.*stream.str"):
            bl.stream("float->float filter F() { work push 1 pop 1 { push(q); } }", "F()")
        running = bl.stream("int->int filter F() { work push 1 pop 1 { push(pop() + 1); } }", "F()")
        self.assertEqual(running([1, 2]).tolist(), [2, 3])
        with self.assertRaisesRegex(TypeError, "items of float64 for a stream of int32"):
            running.push([0.5])


class Watching(unittest.TestCase):
    def test_the_checker_names_the_line_of_python(self):
        with bl.checked() as findings:
            x, y = bl.ones(4, dtype=bl.float32), bl.zeros(4, dtype=bl.float32)
            bl.kernel(ROOT / "examples/saxpy.ptx")[1, 32](2.0, x, y, 5)
        self.assertEqual(findings[0].kind, "OutOfBounds")
        self.assertIn("test_front_ends.py:", findings[0].line)
        with bl.checked() as findings:
            self.assertEqual(float(bl.ones(100).sum()), 100.0)
        self.assertEqual(findings, [])

    def test_a_profile_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            with bl.profile(path):
                float(bl.ones(10).sum())
            self.assertIn("traceEvents", json.loads(path.read_text()))

    def test_files_of_numpy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.npy"
            bl.save(path, bl.arange(3))
            self.assertEqual(bl.load(path).tolist(), [0, 1, 2])
            path = pathlib.Path(folder) / "x.npz"
            bl.savez(path, bl.ones(2), name=bl.asarray([1j]))
            found = bl.load(path)
            self.assertEqual((found["arr_0"].tolist(), found["name"].tolist()), ([1.0, 1.0], [1j]))

    def test_cells_of_notebooks(self):
        class Shell:
            def push(self, names):
                self.names = names

            def register_magic_function(self, function, magic_kind, magic_name):
                self.function, self.kind = function, (magic_kind, magic_name)

        shell = Shell()
        bl.load_ipython_extension(shell)
        shell.function("", "function successor(a) : int -> int = a + 1;")
        self.assertEqual((shell.kind, shell.names["successor"](3)), (("cell", "nesl"), 4))
        self.assertIn("<td>2.5</td>", bl.asarray([2.5])._repr_html_())


if __name__ == "__main__":
    unittest.main()
