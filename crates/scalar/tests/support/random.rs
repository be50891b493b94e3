//! Random values, often corner cases.

pub(crate) use broadloom_random::Random;
use broadloom_scalar::{Element, Literal};

/// Generation of literals.
pub(crate) trait Literals {
    /// Returns a value of a type: half of them are corner cases, the others any bits or small numbers.
    fn literal(&mut self, element: Element) -> Literal;
}

impl Literals for Random {
    fn literal(&mut self, element: Element) -> Literal {
        match (self.below(4), element.range()) {
            (0 | 1, Some((low, high))) => {
                let corners = [low, low + 1, high, high - 1, 0, 1, 2, 3, 7, -1, -2, 31, 32, 33, 64, 100];
                Literal::from_i128(element, *self.pick(&corners))
            }
            (2, Some(_)) => Literal::from_i128(element, self.below(20u32) as i128 - 5),
            (0 | 1, None) => {
                let corners = [
                    0.0,
                    -0.0,
                    1.0,
                    -1.0,
                    0.5,
                    1.5,
                    -2.5,
                    3.0,
                    1e-7,
                    6e-8,
                    65504.0,
                    1e10,
                    -3e9,
                    4294967296.0,
                    1e300,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    f64::NAN,
                    2147483648.0,
                    9.3e18,
                    254.9,
                    -128.5,
                ];
                let corner = *self.pick(&corners);
                Literal::from_f64(element, corner).unwrap_or(Literal::zero(element))
            }
            (2, None) => {
                let value = (self.below(2000u32) as f64 - 1000.0) / 8.0;
                Literal::from_f64(element, value).unwrap_or(Literal::zero(element))
            }
            (_, _) => Literal::from_bits(element, self.bits()),
        }
    }
}
