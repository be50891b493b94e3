"""Ragged arrays against nested lists."""

import itertools
import pickle
import unittest

import broadloom as bl
import numpy as np

RANDOM = np.random.default_rng(2)
LISTS = [RANDOM.integers(0, 20, n).tolist() for n in (3, 0, 5, 1, 0, 4)]
DEEP = [LISTS[:3], [], LISTS[3:]]


class Ragged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = bl.default_device("interp")
        cls.device.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.device.__exit__(None, None, None)

    def setUp(self):
        self.x, self.deep = bl.ragged(LISTS), bl.ragged(DEEP)

    def same(self, ours, lists):
        self.assertEqual(ours.tolist(), lists)

    def test_lists_go_in_and_out(self):
        self.same(self.x, LISTS)
        self.same(self.deep, DEEP)
        self.assertEqual((self.x.depth, self.deep.depth, len(self.x)), (2, 3, 6))
        self.same(pickle.loads(pickle.dumps(self.deep)), DEEP)
        self.same(bl.ragged(np.arange(6).reshape(2, 3)), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(repr(bl.ragged([[1], []])), "Ragged([[1], []])")
        with self.assertRaisesRegex(TypeError, "numbers and lists at one level"):
            bl.ragged([[1], 2])

    def test_reductions(self):
        self.same(self.x.sum(axis=-1), [sum(row) for row in LISTS])
        self.same(self.deep.sum(axis=-1), [[sum(row) for row in rows] for rows in DEEP])
        self.same(self.x.lengths(), [len(row) for row in LISTS])
        self.same(self.x.argmax(), [int(np.argmax(row)) if row else -1 for row in LISTS])
        self.same(self.x.astype(bl.float64).max(axis=-1), [float(max(row, default=-np.inf)) for row in LISTS])
        self.same((self.x > 10).any(axis=-1), [any(e > 10 for e in row) for row in LISTS])
        self.same(self.x.count(), [len(row) for row in LISTS])
        self.assertEqual(int(self.x.sum()), sum(map(sum, LISTS)))
        np.testing.assert_allclose(self.x.std(axis=-1), [np.std(row) if row else np.nan for row in LISTS])

    def test_scans_and_sorts(self):
        self.same(self.x.cumsum(), [np.cumsum(row).tolist() for row in LISTS])
        self.same(self.x.cummax(), [list(itertools.accumulate(row, max)) for row in LISTS])
        self.same(self.deep.sort(), [[sorted(row) for row in rows] for rows in DEEP])
        self.same(self.x.sort(descending=True), [sorted(row, reverse=True) for row in LISTS])
        self.same(self.x.argsort(), [np.argsort(row, kind="stable").tolist() for row in LISTS])
        self.same(self.x[self.x.argsort()], [sorted(row) for row in LISTS])

    def test_arithmetic(self):
        self.same(self.x * 2 + 1, [[2 * e + 1 for e in row] for row in LISTS])
        self.same(self.x - self.x.max(axis=-1), [[e - max(row) for e in row] for row in LISTS])
        self.same(10 - self.deep, [[[10 - e for e in row] for row in rows] for rows in DEEP])
        self.same(self.x + self.x, [[2 * e for e in row] for row in LISTS])
        with self.assertRaisesRegex(ValueError, "list 0 has 3 and 2"):
            self.x + bl.ragged([row[1:] for row in LISTS])

    def test_choosing(self):
        self.same(self.x[self.x > 8], [[e for e in row if e > 8] for row in LISTS])
        self.same(self.deep[self.deep > 8], [[[e for e in row if e > 8] for row in rows] for rows in DEEP])
        self.same(self.x[self.x.lengths() > 0], [row for row in LISTS if row])
        self.same(self.x[self.x.lengths() > 0][:, 0], [row[0] for row in LISTS if row])
        for part in (slice(1, None), slice(None, 2), slice(None, None, -1), slice(-2, None), slice(3, 0, -2)):
            self.same(self.x[:, part], [row[part] for row in LISTS])
        for part in (slice(1, 4), slice(None, None, 2), slice(4, 1, -1)):
            self.same(self.x[part], LISTS[part])
        self.same(self.x[2], LISTS[2])
        self.same(self.x[[5, 0, 0]], [LISTS[5], LISTS[0], LISTS[0]])
        self.same(self.deep[2][0], DEEP[2][0])
        with self.assertRaisesRegex(IndexError, "list 1, which has 0 elements"):
            self.x[:, 0]

    def test_combinations(self):
        for n in (1, 2, 3):
            theirs = [list(itertools.combinations(row, n)) for row in LISTS]
            for at, own in enumerate(self.x.combinations(n)):
                self.same(own, [[one[at] for one in row] for row in theirs])
        left, right = self.x.cartesian(self.x)
        self.same(left * 100 + right, [[a * 100 + b for a in row for b in row] for row in LISTS])

    def test_shapes(self):
        self.same(self.x.flatten(), [e for row in LISTS for e in row])
        self.same(self.deep.flatten(), LISTS)
        self.same(self.deep.flatten(2), [[e for row in rows for e in row] for rows in DEEP])
        self.same(bl.unflatten(self.x, [3, 0, 3]), DEEP)
        self.same(self.x.to_padded(3, fill_value=-1), [(row + [-1] * 3)[:3] for row in LISTS])
        self.same(self.x.local_index(), [list(range(len(row))) for row in LISTS])
        self.same(bl.concatenate_ragged([self.x, self.x]), LISTS + LISTS)
        self.same(bl.concatenate_ragged([self.x, self.x * 2], axis=1), [row + [2 * e for e in row] for row in LISTS])
        runs = bl.ragged([[1, 1, 2], [2], [], [3, 3]])
        self.same(runs.run_lengths(), [[2, 1], [1], [], [2]])

    def test_groups_and_joins(self):
        keys, groups = bl.group_by(bl.asarray([2, 1, 2, 5]), bl.asarray([10, 20, 30, 40]))
        self.assertEqual((keys.tolist(), groups.tolist()), ([1, 2, 5], [[20], [10, 30], [40]]))
        left, right = [3, 1, 2, 2], [2, 3, 2, 9]
        ours = bl.join(bl.asarray(left), bl.asarray(right))
        theirs = [(a, b) for a, x in enumerate(left) for b, y in enumerate(right) if x == y]
        self.assertEqual(list(zip(*(one.tolist() for one in ours))), theirs)

    def test_functions_of_nesl_take_and_return_them(self):
        m = bl.nesl("function twice(rows) : [[float]] -> [[float]] = {{2.0 * e : e in row} : row in rows};")
        floats = self.x.astype(bl.float64)
        self.same(m.twice(floats + 1), [[2.0 * (e + 1) for e in row] for row in LISTS])


if __name__ == "__main__":
    unittest.main()
