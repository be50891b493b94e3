"""Complex numbers against NumPy, on the interpreter."""

import unittest
import warnings

import broadloom as bl
import numpy as np

RANDOM = np.random.default_rng(3)
Z, W = (RANDOM.normal(size=(3, 4)) * 2 + 1j * RANDOM.normal(size=(3, 4)) for _ in range(2))
NAMES = {
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10", "sqrt": "sqrt",
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "abs": "abs",
    "conj": "conj", "real": "real", "imag": "imag", "angle": "angle", "square": "square", "reciprocal": "reciprocal",
    "sign": "sign", "negative": "negative", "isnan": "isnan", "isfinite": "isfinite", "isinf": "isinf",
}


class Complex(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = bl.default_device("interp")
        cls.device.__enter__()
        warnings.simplefilter("ignore")

    @classmethod
    def tearDownClass(cls):
        cls.device.__exit__(None, None, None)

    def alike(self, ours, theirs, tolerance=1e-12):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)

    def test_elementary_functions(self):
        for ours, theirs in NAMES.items():
            with self.subTest(ours):
                self.alike(getattr(bl, ours)(bl.asarray(Z)), getattr(np, theirs)(Z))
                single = Z.astype(np.complex64)
                self.alike(getattr(bl, ours)(bl.asarray(single)), getattr(np, theirs)(single), 2e-5)

    def test_operators(self):
        z, w = bl.asarray(Z), bl.asarray(W)
        for name in ("add", "sub", "mul", "truediv", "pow", "eq", "ne"):
            self.alike(getattr(z, f"__{name}__")(w), getattr(Z, f"__{name}__")(W), 1e-11)
        self.alike(2 * z + 1j, 2 * Z + 1j)
        self.alike(bl.asarray([1.0, 2.0]) * 1j, np.array([1.0, 2.0]) * 1j)
        self.alike(bl.imag(z * bl.conj(z)), np.zeros((3, 4)))
        self.alike(z**3, Z**3)
        self.alike(bl.asarray(W.astype(np.complex64)) + 1, W.astype(np.complex64) + 1, 1e-6)

    def test_reductions_and_products(self):
        z = bl.asarray(Z)
        for name in ("sum", "prod", "mean", "var", "std"):
            for axis in (None, 0, 1):
                self.alike(getattr(bl, name)(z, axis=axis), getattr(np, name)(Z, axis=axis))
        self.alike(bl.cumulative_prod(z, axis=1), np.cumprod(Z, axis=1))
        self.alike(bl.cumulative_sum(z, axis=0), np.cumsum(Z, axis=0))
        self.alike(z @ bl.asarray(W.T), Z @ W.T)
        self.alike(bl.vecdot(z, bl.asarray(W)), np.vecdot(Z, W))
        self.alike(bl.linalg.vector_norm(z), np.linalg.norm(Z))

    def test_moving_elements(self):
        z = bl.asarray(Z)
        self.alike(z[1:, ::-1], Z[1:, ::-1])
        self.alike(z[z.__eq__(z)], Z[Z == Z])
        self.alike(bl.concat([z, z], axis=1), np.concatenate([Z, Z], axis=1))
        self.alike(bl.where(bl.asarray(Z.real > 0), z, 0), np.where(Z.real > 0, Z, 0))
        self.alike(z.at[0].set(1j), np.concatenate([np.full((1, 4), 1j), Z[1:]]))
        self.alike(bl.sort(z, axis=1), np.sort(Z, axis=1))
        self.alike(bl.unique_values(bl.asarray([1j, 1, 1j])), np.unique([1j, 1, 1j]))
        self.alike(bl.pad(z, 1), np.pad(Z, 1))

    def test_decompositions_of_general_matrices(self):
        turn = np.array([[0.0, -1.0], [1.0, 0.0]])
        self.alike(bl.linalg.eigvals(bl.asarray(turn)), np.linalg.eigvals(turn))
        self.alike(bl.linalg.inv(bl.asarray(Z[:, :3])), np.linalg.inv(Z[:, :3]))
        found = bl.linalg.eig(bl.asarray(Z[:, :3]))
        self.alike(bl.asarray(Z[:, :3]) @ found.eigenvectors, np.asarray(found.eigenvectors * found.eigenvalues), 1e-10)

    def test_what_has_no_order(self):
        for name in ("max", "floor", "maximum"):
            with self.assertRaises(TypeError):
                getattr(bl, name)(*([bl.asarray(Z)] * (2 if name == "maximum" else 1)))
        with self.assertRaisesRegex(TypeError, "complex numbers do not become float64"):
            bl.asarray(Z).astype(bl.float64)


if __name__ == "__main__":
    unittest.main()
