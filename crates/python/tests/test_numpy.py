"""Functions with NumPy's names against NumPy, on the interpreter, which compiles nothing."""

import unittest
import warnings

import broadloom as bl
import numpy as np

RANDOM = np.random.default_rng(5)
A, B, V = RANDOM.normal(size=(4, 5)), RANDOM.normal(size=(5, 3)), RANDOM.normal(size=7)
N = A.copy()
N[0, 1] = np.nan
N[2] = np.nan
I, X, SHORT = np.array([1, 3, 1, 0, 6]), np.sort(V), np.array([1.0, 2.0, 3.0, 0.5])


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = bl.default_device("interp")
        cls.device.__enter__()
        warnings.simplefilter("ignore")

    @classmethod
    def tearDownClass(cls):
        cls.device.__exit__(None, None, None)

    def alike(self, ours, theirs):
        if isinstance(theirs, (tuple, list)):
            self.assertEqual(len(ours), len(theirs))
            for one, other in zip(ours, theirs):
                self.alike(one, other)
            return
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        self.assertEqual(ours.shape, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)

    def check(self, names, *arguments, **options):
        """Calls functions of both libraries with the same arguments; arrays of NumPy become ours."""
        for name in names.split():
            with self.subTest(name, options=options):
                theirs = getattr(np, name)(*arguments, **options)
                self.alike(getattr(bl, name)(*map(converted, arguments), **options), theirs)


def converted(value):
    if isinstance(value, np.ndarray):
        return bl.asarray(value)
    return type(value)(map(converted, value)) if isinstance(value, (tuple, list)) else value


class Statistics(Case):
    def test_order_statistics(self):
        self.check("median", A)
        self.check("median ptp", A, axis=1)
        for method in ("linear", "lower", "higher", "nearest", "midpoint", "weibull", "hazen", "median_unbiased"):
            self.check("quantile", A, [0.1, 0.5, 0.93], axis=0, method=method)
        self.check("percentile", A, 30, axis=1, keepdims=True)
        self.check("nanquantile", N, [0.2, 0.7], axis=0)

    def test_functions_that_ignore_nan(self):
        names = "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian"
        self.check(names, N)
        self.check(names, N, axis=1)
        self.check("nancumsum nancumprod", N, axis=0)
        self.check("nanargmax nanargmin", N[:2], axis=1)
        self.check("nan_to_num", N)

    def test_covariance(self):
        self.check("cov corrcoef", A)
        self.check("cov", V, V * V)
        self.check("average", A, axis=0, weights=np.array([1.0, 2, 3, 4]))

    def test_histograms(self):
        self.check("histogram", V, 5)
        self.check("histogram", V, 5, density=True)
        self.check("histogram", A, [-1, 0, 0.3, 1])
        self.check("histogram", V, 4, weights=V)
        self.check("histogram2d", V, V * V, 3, density=True)
        self.check("bincount", I)
        self.check("bincount", I, weights=np.arange(5.0))
        self.check("digitize", V, np.array([-1.0, 0, 1]))
        self.check("digitize", V, np.array([1.0, 0, -1]))


class Lines(Case):
    def test_convolution(self):
        for mode in ("full", "same", "valid"):
            self.check("convolve correlate", V, SHORT, mode)
            self.check("convolve correlate", SHORT, V, mode)
        long = RANDOM.normal(size=1500)
        self.check("convolve", long, long[:600])

    def test_interpolation(self):
        self.check("interp", V * 1.3, X, V)
        self.check("interp", V * 2, X, V, left=-9, right=9)
        self.check("interp", V * 5, X, V, period=2.0)

    def test_slopes_and_integrals(self):
        for order in (1, 2):
            self.check("gradient", A, edge_order=order)
            self.check("gradient", V, X, edge_order=order)
            self.check("gradient", A, 0.5, axis=1, edge_order=order)
        self.check("trapezoid", V, X)
        self.check("unwrap", V * 9)
        self.check("sinc ediff1d", V)
        self.check("vander", V, 3)
        self.check("polyval", SHORT, V)


class Arrangement(Case):
    def test_every_mode_of_pad(self):
        for mode in "constant edge wrap reflect symmetric linear_ramp maximum mean median minimum".split():
            self.check("pad", A, ((1, 2), (3, 1)), mode)
            self.check("pad", I, (3, 2), mode)
        self.check("pad", A, ((1, 2), (0, 1)), constant_values=((1, 2), (3, 4)))
        self.check("pad", V, (20, 15), "reflect")
        self.check("pad", V, (9, 15), "symmetric", reflect_type="odd")

    def test_einsum(self):
        three = RANDOM.normal(size=(2, 4, 5))
        cases = {
            "ij,jk->ik": (A, B), "ij,jk": (A, B), "ij->ji": (A,), "ii": (A[:, :4],), "ii->i": (A[:, :4],), "i,j": (V, V),
            "i,i": (V, V), "ij,ij->i": (A, A), "...j,jk->...k": (A, B), "ij,jk,kl->il": (A, B, B.T),
            "bij,bjk->bik": (three, three.transpose(0, 2, 1)), "ij->": (A,), "ijk,k->ij": (three, A[0]),
        }
        for subscripts, operands in cases.items():
            self.check("einsum", subscripts, *operands)
        with self.assertRaisesRegex(ValueError, "'j' is an axis of 5 and of 3"):
            bl.einsum("ij,jk", bl.asarray(A), bl.asarray(B.T))

    def test_joins_and_splits(self):
        self.check("hstack vstack column_stack", [A, A])
        self.check("hstack vstack column_stack", [V, V])
        self.check("array_split", V, 3)
        self.check("split", A, [1, 3], axis=1)
        self.check("append", A, A, axis=1)
        self.check("delete", A, [0, 2], axis=1)
        self.check("delete", V, slice(1, 4))
        self.check("insert", V, [1, 3], np.array([8.0, 9.0]))
        self.check("insert", A, 1, np.arange(4.0), axis=1)
        self.check("kron inner", A, A)
        self.check("resize", V, (3, 4))

    def test_diagonals_and_rotations(self):
        for k in (-2, 0, 1):
            self.check("diag", V, k)
            self.check("diag", A, k)
            self.check("tri", 3, 4, k)
            self.check("triu_indices tril_indices", 4, k)
            self.check("rot90", A, k)
        self.check("fliplr flipud ravel", A)
        self.check("indices", (2, 3))

    def test_choices(self):
        self.check("argwhere flatnonzero", A > 0)
        self.check("compress", np.array([True, False, True, False]), A, axis=0)
        self.check("extract", A > 0, A)
        self.check("select", [A > 0.5, A < 0], [A, A * 2], 7.0)
        self.check("choose", np.array([0, 1, 2]), [np.arange(3), np.arange(3, 6), np.arange(6, 9)])
        self.check("lexsort", (np.array([3, 1, 2, 1, 0]), np.array([1, 2, 1, 2, 1])))
        self.check("unravel_index", np.array([5, 17]), (4, 5))
        self.check("isclose", A, A + 1e-9)
        self.alike(bl.topk(bl.asarray(V), 3)[0], np.sort(V)[::-1][:3])
        self.alike(bl.asarray(A)[bl.ix_([0, 2], [1, 3])], A[np.ix_([0, 2], [1, 3])])


class Indices(Case):
    def test_changed_copies(self):
        x = bl.asarray(A)
        theirs = A.copy()
        np.add.at(theirs, [0, 0, 2], 1.0)
        self.alike(x.at[bl.asarray([0, 0, 2])].add(1.0), theirs)
        theirs = A.copy()
        theirs[A > 0] *= 2
        self.alike(x.at[x > 0].multiply(2.0), theirs)
        theirs = A.copy()
        theirs[1:3, ::2] = np.maximum(theirs[1:3, ::2], 0.2)
        self.alike(x.at[1:3, ::2].max(0.2), theirs)
        self.alike(x, A)

    def test_truth_values_among_indices(self):
        x = bl.asarray(A)
        for key in ((0, True), (True, slice(None), 0), (0, False), (True,)):
            self.alike(x[key], A[key])
        theirs = A.copy()
        theirs[0, True] = 3
        self.alike(x.at[0, True].set(3.0), theirs)


class Algebra(Case):
    def test_more_of_linalg(self):
        a, line = bl.asarray(A), bl.asarray(A[:, 0])
        self.alike(bl.linalg.lstsq(a, line)[0], np.linalg.lstsq(A, A[:, 0], rcond=None)[0])
        self.alike(bl.linalg.multi_dot([a, bl.asarray(B), bl.asarray(B.T)]), np.linalg.multi_dot([A, B, B.T]))
        self.alike(bl.linalg.cond(a), np.linalg.cond(A))
        self.alike(bl.linalg.norm(a, axis=1), np.linalg.norm(A, axis=1))

    def test_transforms_of_any_length_and_axis(self):
        for name in ("fft", "ifft", "rfft", "ihfft"):
            for axis in (0, 1):
                for n in (None, 3, 7):
                    self.alike(getattr(bl.fft, name)(bl.asarray(A), n=n, axis=axis), getattr(np.fft, name)(A, n=n, axis=axis))
        spectrum = np.fft.rfft(A)
        self.alike(bl.fft.irfft(bl.asarray(spectrum), n=5), A)
        self.alike(bl.fft.fftn(bl.asarray(A)), np.fft.fftn(A))
        self.alike(bl.fft.fftshift(bl.fft.fftfreq(6, d=0.5)), np.fft.fftshift(np.fft.fftfreq(6, d=0.5)))


if __name__ == "__main__":
    unittest.main()
