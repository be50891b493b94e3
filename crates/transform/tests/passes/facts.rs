//! Facts about launches.

use broadloom_ptx::Directive;
use broadloom_ptx::{Function, Special};
use broadloom_transform::facts::Facts;

#[test]
fn one_of_a_kind_has_index_zero() {
    let facts = Facts { block: Some([32, 1, 1]), grid: None };
    assert_eq!(facts.special(Special::NtidX), Some(32));
    assert_eq!((facts.special(Special::TidX), facts.special(Special::TidY)), (None, Some(0)));
    assert_eq!((facts.special(Special::CtaidX), facts.special(Special::NctaidX)), (None, None));
    let mut kernel = Function::new("k", true);
    kernel.directives.push(Directive::Words("reqntid", vec![64]));
    assert_eq!(Facts::default().with_directives(&kernel).block, Some([64, 1, 1]));
    assert_eq!(facts.with_directives(&kernel), facts);
}
