"""Compiled functions of elements, traced functions, loops on the device, batches, random numbers."""

import math
import unittest

import broadloom as bl
import numpy as np

SCALE = 3.0
X = np.linspace(-2.0, 2.0, 9)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = bl.default_device("interp")
        cls.device.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.device.__exit__(None, None, None)

    def alike(self, ours, theirs):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def doubled(x):
    return x * 2


class Elements(Case):
    def against_python(self, function, *arguments):
        """Compares a compiled function with itself, called for each element."""
        compiled = bl.elementwise(function)(*map(bl.asarray, arguments))
        called = [function(*(one.item() for one in row)) for row in zip(*arguments)]
        if isinstance(compiled, tuple):
            for at, one in enumerate(compiled):
                self.alike(one, np.array([row[at] for row in called]))
        else:
            self.alike(compiled, np.array(called))

    def test_branches_and_early_returns(self):
        def function(x):
            if x < -1:
                return -1.0
            for i in range(5):
                if i > x * 2:
                    return float(i)
            return math.sin(x) + SCALE

        self.against_python(function, X)

    def test_loops(self):
        def function(n):
            steps = 0
            while n != 1:
                if n % 2 == 0:
                    n = n // 2
                else:
                    n = 3 * n + 1
                steps += 1
                if steps > 50:
                    break
            return steps

        self.against_python(function, np.arange(1, 12))

    def test_local_arrays_calls_and_tuples(self):
        def function(x, y):
            table = [0.0] * 4
            for i in range(4):
                table[i] = doubled(x) * i - y
            low, high = min(table[0], table[3]), max(table[1], table[2])
            low, high = high, low
            return low if not x > y else abs(high), x // 1 + y % 3

        self.against_python(function, X, X[::-1].copy())

    def test_types_adapt(self):
        half = bl.elementwise(lambda x: x * 0.5)
        self.alike(half(bl.asarray([1, 2], dtype=bl.float32)), np.array([0.5, 1.0], "float32"))
        self.alike(half(bl.asarray([1, 2])), np.array([0.5, 1.0]))

        @bl.elementwise
        def total(x):
            found = 0
            for _ in range(3):
                found = found + x
            return found

        self.alike(total(bl.asarray([1.5], dtype=bl.float32)), np.array([4.5], "float32"))

    def test_fuses_with_what_surrounds_it(self):
        x = bl.asarray(X)
        self.assertTrue(bl.explain((bl.elementwise(doubled)(x + 1) * 3).sum()).startswith("1 kernel"))

    def test_mistakes_name_the_line(self):
        @bl.elementwise
        def wrong(x):
            return x + unknown_name  # noqa: F821

        with self.assertRaisesRegex(NameError, r"`wrong`, .*test_transforms.py:\d+: `unknown_name`"):
            wrong(bl.asarray(X))
        with self.assertRaisesRegex(TypeError, "takes 1 arguments, not 2"):
            wrong(1.0, 2.0)

    def test_neighbourhoods(self):
        @bl.stencil(1, boundary="wrap")
        def smooth(p, weight):
            return (p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1]) * weight + p[0, 0]

        image = np.arange(12.0).reshape(3, 4)
        theirs = sum(np.roll(image, by, axis) for axis in (0, 1) for by in (-1, 1)) * 0.25 + image
        self.alike(smooth(bl.asarray(image), 0.25), theirs)

    def test_operators_of_the_user(self):
        x = bl.asarray(np.arange(1, 9).reshape(2, 4))
        self.alike(bl.reduce(lambda a, b: a * b % 1009, x, 1, axis=1), np.array([24, 1680 % 1009]))
        self.alike(bl.associative_scan(lambda a, b: a if a > b else b, bl.asarray([3, 1, 4, 1, 5]), 0), np.array([3, 3, 4, 4, 5]))


class Traced(Case):
    def test_a_function_is_called_once_for_each_shape(self):
        calls = []

        @bl.jit
        def function(x, scale):
            calls.append(x.shape)
            return {"sum": (x * scale).sum(), "both": [x + 1, scale]}

        for scale in (2.0, 3.0):
            found = function(bl.asarray(X), scale)
            self.alike(found["sum"], (X * scale).sum())
            self.alike(found["both"][0], X + 1)
        function(bl.asarray(X[:4]), 1.0)
        self.assertEqual(calls, [(9,), (4,)])

    def test_numbers_keep_adapting(self):
        found = bl.jit(lambda x, n: x * n)(bl.asarray([1, 2], dtype=bl.float32), 0.5)
        self.alike(found, np.array([0.5, 1.0], "float32"))

    def test_functions_that_look_at_elements_run_as_they_stand(self):
        @bl.jit
        def function(x):
            return x * 2 if float(x.sum()) > 0 else x * 3

        self.alike(function(bl.asarray(X + 1)), (X + 1) * 2)
        self.alike(function(bl.asarray(X - 1)), (X - 1) * 3)

    def test_static_arguments_and_errors(self):
        power = bl.jit(lambda x, n: x**n, static=1)
        self.alike(power(bl.asarray(X), 2), X**2)
        self.alike(power(bl.asarray(X), 3), X**3)
        with self.assertRaisesRegex(ValueError, "do not fit together"):
            bl.jit(lambda x, y: x + y)(bl.zeros(3), bl.zeros(4))

    def test_loops(self):
        self.alike(bl.fori_loop(0, 10, lambda i, x: x * 0.5 + i, bl.asarray(X)), _loop(X))
        state = bl.fori_loop(0, 5, lambda i, s: (s[1], s[0] + s[1]), (bl.asarray(0), bl.asarray(1)))
        self.assertEqual((int(state[0]), int(state[1])), (5, 8))
        self.assertEqual(int(bl.while_loop(lambda x: x < 100, lambda x: x * 2, bl.asarray(1))), 128)
        last, all_ = bl.scan(lambda total, x: (total + x, total * x), bl.asarray(0.0), bl.asarray(X))
        self.alike(last, X.sum())
        self.alike(all_, np.concatenate([[0], np.cumsum(X)[:-1]]) * X)
        with self.assertRaisesRegex(TypeError, "part 0 of the state"):
            bl.fori_loop(0, 3, lambda i, x: x[:1], bl.asarray(X))

    def test_loops_and_conditions_inside(self):
        @bl.jit
        def function(x, up):
            x = bl.fori_loop(0, 3, lambda i, y: y + i, x)
            return bl.cond(up, lambda y: y + 1, lambda y: y - 1, x)

        self.alike(function(bl.asarray(X), bl.asarray(True)), X + 4)
        self.alike(function(bl.asarray(X), bl.asarray(False)), X + 2)


def _loop(x):
    for i in range(10):
        x = x * 0.5 + i
    return x


class Batches(Case):
    A, B = np.arange(12.0).reshape(3, 4), np.arange(12.0, 24.0).reshape(3, 4)

    def over_rows(self, function, *arguments):
        ours = bl.vmap(function)(*map(bl.asarray, arguments))
        self.alike(ours, np.stack([np.asarray(function(*map(bl.asarray, row))) for row in zip(*arguments)]))

    def test_functions_of_rows(self):
        for function in (
            lambda a: a.sum(), lambda a: a[::-1] * 2, lambda a: bl.cumulative_sum(a), lambda a: a.max() - a, lambda a: bl.argmin(a),
            lambda a: bl.sort(-a), lambda a: bl.reshape(a, (2, 2)).T, lambda a: a[bl.asarray([0, 0, 3])], lambda a: bl.median(a),
            lambda a: bl.concat([a, bl.ones(2)]), lambda a: a.at[1].set(7.0), lambda a: bl.where(a > 5, a, 0.0),
            lambda a: bl.ones((2, 4)) @ a, lambda a: bl.roll(a, 1), lambda a: bl.stack([a, a]),
        ):
            self.over_rows(function, self.A)

    def test_several_arguments_and_axes(self):
        self.over_rows(lambda a, b: (a * b).sum() + b, self.A, self.B)
        table = bl.asarray(np.arange(20.0).reshape(4, 5))
        found = bl.vmap(lambda a, m: a @ m, in_axes=(0, None))(bl.asarray(self.A), table)
        self.alike(found, self.A @ np.asarray(table))
        found = bl.vmap(lambda a: a * 2, in_axes=1, out_axes=1)(bl.asarray(self.A))
        self.alike(found, self.A * 2)


class Random(Case):
    def test_moments(self):
        rng, size = bl.random.default_rng(3), 4000
        for name, arguments, mean, deviation in (
            ("random", (), 0.5, math.sqrt(1 / 12)), ("normal", (2.0, 3.0), 2.0, 3.0), ("exponential", (2.0,), 2.0, 2.0),
            ("poisson", (7.5,), 7.5, math.sqrt(7.5)), ("binomial", (20, 0.3), 6.0, math.sqrt(4.2)), ("gamma", (2.5, 2.0), 5.0, math.sqrt(10)),
            ("beta", (2.0, 3.0), 0.4, 0.2), ("integers", (0, 10), 4.5, math.sqrt(99 / 12)), ("laplace", (), 0.0, math.sqrt(2)),
            ("geometric", (0.25,), 4.0, math.sqrt(12)), ("logistic", (), 0.0, math.pi / math.sqrt(3)),
        ):
            values = np.asarray(getattr(rng, name)(*arguments, size=size)).astype(float)
            with self.subTest(name):
                self.assertLess(abs(values.mean() - mean), 5 * deviation / math.sqrt(size))
                self.assertLess(abs(values.std() / deviation - 1), 0.15)

    def test_a_seed_repeats(self):
        first, second = (bl.random.default_rng(11) for _ in range(2))
        self.alike(first.normal(size=5), np.asarray(second.normal(size=5)))
        self.assertNotEqual(float(first.random()), float(first.random()))
        with bl.default_device("cpu"):
            other = bl.random.default_rng(12).random(8)
        self.alike(bl.random.default_rng(12).random(8), np.asarray(other))

    def test_orders_and_choices(self):
        rng = bl.random.default_rng(1)
        self.assertEqual(sorted(rng.permutation(20).tolist()), list(range(20)))
        self.assertEqual(len(set(rng.choice(50, 20, replace=False).tolist())), 20)
        picked = np.asarray(rng.choice(3, 3000, p=[0.2, 0.0, 0.8]))
        self.assertEqual(set(picked.tolist()), {0, 2})
        with self.assertRaisesRegex(ValueError, "without replacement"):
            rng.choice(3, 5, replace=False)


if __name__ == "__main__":
    unittest.main()
