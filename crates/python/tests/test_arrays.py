"""Arrays against NumPy: laziness, operators, promotion, indexing, reductions."""

import copy
import pickle
import subprocess
import sys
import threading
import unittest

import broadloom as bl
import numpy as np

RANDOM = np.random.default_rng(7)


class Case(unittest.TestCase):
    def same(self, ours, theirs, exact=True):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
        (np.testing.assert_array_equal if exact else np.testing.assert_allclose)(ours, theirs)


class Laziness(Case):
    def test_an_expression_is_one_kernel(self):
        x = bl.asarray(np.arange(1000.0))
        self.assertEqual(float((x * 2 + 1).sum()), 1000000.0)
        self.assertTrue(bl.explain((x * 2 + 1).sum()).startswith("1 kernel"))

    def test_errors_come_at_the_line_that_made_them(self):
        x, y = bl.zeros(3), bl.zeros(4)
        with self.assertRaisesRegex(ValueError, r"shapes \[3\] and \[4\]"):
            x + y
        with self.assertRaisesRegex(TypeError, "arrays hold numbers"):
            bl.asarray([object()])
        with self.assertRaisesRegex(IndexError, "index 3 is out of bounds for axis 0 with size 3"):
            x[3]
        with self.assertRaisesRegex(AttributeError, "use `concat`"):
            bl.concatenate

    def test_evaluate_shares_a_plan(self):
        x = bl.asarray(RANDOM.random(100))
        double, square = x * 2, x * x
        bl.evaluate(double, square)
        self.same(square, np.asarray(x) ** 2)
        self.same(double, np.asarray(x) * 2)


class Values(Case):
    def test_every_type_comes_back(self):
        for dtype in bl.__array_namespace_info__().dtypes().values():
            values = RANDOM.integers(0, 2, (3, 4)).astype(dtype)
            self.same(bl.asarray(values), values)
            self.same(bl.asarray(values.T), values.T)
            self.same(bl.asarray(values)[1:, ::2], values[1:, ::2])

    def test_a_numpy_array_is_copied_in_and_viewed_out(self):
        values = np.arange(4.0)
        x = bl.asarray(values)
        values[0] = 9
        self.assertEqual(float(x[0]), 0.0)
        host = np.asarray(x)
        self.assertFalse(host.flags.writeable)
        x[0] = 5.0
        self.assertEqual((host[0], float(x[0])), (0.0, 5.0))

    def test_dlpack_and_pickle(self):
        x = bl.asarray([[1.5, 2.5]])
        self.same(np.from_dlpack(x), [[1.5, 2.5]])
        self.same(bl.from_dlpack(np.arange(3)), np.arange(3))
        self.same(pickle.loads(pickle.dumps(x)), [[1.5, 2.5]])
        self.same(copy.deepcopy(x), [[1.5, 2.5]])

    def test_representation(self):
        self.assertEqual(repr(bl.asarray([1.0, 2.0])), "Array([1., 2.])")
        self.assertEqual(f"{bl.asarray(2.5):.2f}", "2.50")

    def test_numbers_of_every_size(self):
        self.assertEqual(int(bl.asarray(2**64 - 1, dtype=bl.uint64)), 2**64 - 1)
        self.assertEqual(int(bl.asarray(-(2**63))), -(2**63))
        with self.assertRaises(OverflowError):
            bl.asarray([1], dtype=bl.int8) + 300


class Operators(Case):
    def test_arithmetic_is_numpys(self):
        for dtype in ("int8", "int32", "int64", "uint8", "uint32", "float32", "float64"):
            a = RANDOM.integers(1, 50, (4, 5)).astype(dtype)
            b = RANDOM.integers(1, 7, (5,)).astype(dtype)
            a[0, 0] *= 1 if dtype[0] == "u" else np.array(-1, dtype)
            x, y = bl.asarray(a), bl.asarray(b)
            for name in ("__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__lt__", "__eq__"):
                ours, theirs = getattr(x, name)(y), getattr(a, name)(b)
                if name == "__truediv__" and dtype[0] in "iu":
                    theirs = a / b.astype("float64")
                self.same(ours, theirs)

    def test_division_by_zero_and_signs(self):
        a = np.array([-7.5, 7.5, -0.0, 0.0, np.nan, 5.0, -1e300])
        b = np.array([2.0, -2.0, 3.0, -3.0, 1.0, 0.0, 1e-300])
        with np.errstate(all="ignore"):
            self.same(bl.asarray(a) // bl.asarray(b), a // b)
            self.same(bl.asarray(a) % bl.asarray(b), a % b)
        i, j = np.array([-7, 7, -7, 5]), np.array([2, -2, -2, 0])
        with np.errstate(all="ignore"):
            self.same(bl.asarray(i) // bl.asarray(j), i // j)
            self.same(bl.asarray(i) % bl.asarray(j), i % j)

    def test_powers_of_integers_wrap(self):
        a = np.array([0, 1, -1, 2, 3, -5], np.int32)
        e = np.array([0, 9, 7, 31, 20, 13], np.int32)
        self.same(bl.asarray(a) ** bl.asarray(e), a**e)
        self.same(bl.asarray(a) ** 3, a**3)
        with self.assertRaises(ValueError):
            bl.asarray(a) ** -1

    def test_numbers_adapt_to_arrays(self):
        x = bl.asarray([1, 2], dtype=bl.int8)
        self.assertEqual((x + 1).dtype, bl.int8)
        self.assertEqual((x + 1.5).dtype, bl.float64)
        self.assertEqual((bl.asarray([1.0], dtype=bl.float32) * 2.5).dtype, bl.float32)
        self.assertEqual((1 / x).dtype, bl.float64)
        self.assertEqual((np.float32(1) + bl.zeros(2, dtype=bl.float32)).dtype, bl.float32)
        self.assertIsInstance(np.arange(2.0) + bl.zeros(2), bl.Array)

    def test_nan_wins(self):
        a, b = np.array([1.0, np.nan, 3.0]), np.array([np.nan, 2.0, 2.0])
        self.same(bl.maximum(bl.asarray(a), bl.asarray(b)), np.maximum(a, b))
        self.same(bl.max(bl.asarray(a)), np.max(a))
        self.same(bl.argmin(bl.asarray(a)), np.argmin(a))

    def test_in_place(self):
        x = bl.asarray([1, 2, 3])
        y = x
        x += 1
        self.same(y, [2, 3, 4])
        with self.assertRaises(TypeError):
            x += 0.5


class Indexing(Case):
    KEYS = [
        0, -1, slice(1, 3), slice(None, None, -1), slice(3, 0, -2), (..., 1), (1, None, slice(2)), (slice(None), 2),
        (0, 1, 2), [2, 0], ([0, 1], [1, 2]), (slice(None), [0, 2, 2]), ([1, 0], slice(None), [3, 4]), (0, slice(None), [1, 2]),
        np.array([True, False, True]), (slice(None), np.array([True, False, True, True])), np.array([[0, 1], [2, 0]]),
    ]

    def setUp(self):
        self.values = np.arange(60).reshape(3, 4, 5)

    def test_reading(self):
        for key in self.KEYS:
            with self.subTest(key=key):
                self.same(bl.asarray(self.values)[key], self.values[key])

    def test_writing(self):
        for key in self.KEYS:
            with self.subTest(key=key):
                values, x = self.values.copy(), bl.asarray(self.values)
                values[key], x[key] = -values[key], -x[key]
                self.same(x, values)
                values[key], x[key] = 7, 7
                self.same(x, values)

    def test_masks(self):
        x = bl.asarray(self.values)
        self.same(x[x > 30], self.values[self.values > 30])
        x[x > 30] = 0
        self.same(x, np.where(self.values > 30, 0, self.values))

    def test_what_is_wrong_is_refused(self):
        x = bl.asarray(self.values)
        for key in (3, (0, 0, 0, 0), [5], [0.5], "a", (slice(None), bl.asarray([4])), np.array([True])):
            with self.subTest(key=key), self.assertRaises(IndexError):
                x[key]
        with self.assertRaises(ValueError):
            x[0] = np.zeros(3, np.int64)
        with self.assertRaises(TypeError):
            x[0] = 1.5


class Reductions(Case):
    def test_reductions_are_numpys(self):
        values = RANDOM.integers(-50, 50, (3, 4, 5)).astype(np.int8)
        x = bl.asarray(values)
        for name in ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std"):
            for axis in (None, 0, -1, (0, 2), ()):
                for keepdims in (False, True):
                    with self.subTest(name=name, axis=axis, keepdims=keepdims):
                        theirs = getattr(np, name)(values, axis=axis, keepdims=keepdims)
                        self.same(getattr(bl, name)(x, axis=axis, keepdims=keepdims), theirs, name not in ("mean", "var", "std"))

    def test_orders(self):
        values = RANDOM.integers(0, 9, (4, 7)).astype(np.float32)
        x = bl.asarray(values)
        for axis in (0, 1):
            self.same(bl.sort(x, axis=axis), np.sort(values, axis=axis))
            self.same(bl.argsort(x, axis=axis), np.argsort(values, axis=axis, stable=True))
            self.same(bl.cumulative_sum(x, axis=axis), np.cumsum(values, axis=axis))
            self.same(bl.argmax(x, axis=axis), np.argmax(values, axis=axis))
        ours, theirs = bl.unique_all(x), np.unique_all(values)
        for one, other in zip(ours, theirs):
            self.same(one, other)
        line = np.sort(values.ravel())
        for side in ("left", "right"):
            self.same(bl.searchsorted(bl.asarray(line), x, side=side), np.searchsorted(line, values, side=side))

    def test_products(self):
        a, b = RANDOM.integers(0, 9, (2, 3, 4)), RANDOM.integers(0, 9, (4, 5))
        self.same(bl.asarray(a) @ bl.asarray(b), a @ b)
        self.same(bl.asarray(b) @ bl.asarray(b[0]), b @ b[0])
        self.same(bl.tensordot(bl.asarray(a), bl.asarray(b), axes=1), np.tensordot(a, b, axes=1))
        matrix = RANDOM.random((4, 4)) + 4 * np.eye(4)
        self.same(bl.linalg.solve(bl.asarray(matrix), bl.ones(4)), np.linalg.solve(matrix, np.ones(4)), exact=False)


class Threads(Case):
    def test_threads_compute_at_once(self):
        x, results = bl.asarray(np.arange(10000.0)), []

        def work(number):
            for step in range(20):
                results.append(float((x * number + step).sum()) == 49995000.0 * number + step * 10000)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual((len(results), all(results)), (80, True))


class Devices(Case):
    def test_devices_by_name(self):
        self.assertIs(bl.device("cpu"), bl.device("cpu"))
        with bl.default_device("interp"):
            x = bl.ones(3)
            self.assertEqual(x.device, "interp")
            with self.assertRaisesRegex(ValueError, "to_device"):
                x + bl.ones(3, device="cpu")
            self.same(x.to_device("cpu"), np.ones(3))
            self.same(x + 1, np.full(3, 2.0))
        with self.assertRaisesRegex(ValueError, "there is no device `gpu`"):
            bl.device("gpu")


class Processes(Case):
    def test_ctrl_c_ends_a_wait(self):
        program = (
            "import broadloom as bl, os, signal, threading, time\n"
            "x = bl.ones((1400, 1400))\n"
            "float(bl.sum(x))\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # A job in the background ignores the signal.
            "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "start = time.time()\n"
            "try:\n"
            "    while time.time() - start < 60:\n"
            "        for _ in range(8):\n"
            "            x = x @ x * 1e-3\n"
            "        bl.synchronize(x)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', float(bl.sum(bl.ones(3))), flush=True)\n"
            "    os._exit(0)\n"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual((run.stdout, run.stderr), ("interrupted 3.0\n", ""))

    def test_a_forked_child_is_told(self):
        program = (
            "import broadloom as bl, os\n"
            "x = bl.ones(3)\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    try:\n"
            "        float(bl.sum(x))\n"
            "    except RuntimeError as error:\n"
            "        os._exit(7 if 'forked' in str(error) else 8)\n"
            "    os._exit(9)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(bl.sum(x)))\n"
        )
        run = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((run.stdout, run.stderr), ("7 3.0\n", ""))


if __name__ == "__main__":
    unittest.main()
